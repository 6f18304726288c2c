package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/cluster/whole"
)

const identityFile = "identity.json"

// identity is whose data folder it is. A vote counts once for an id, so a folder that changed its id could vote twice.
type identity struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
}

// claim makes sure that the data folder belongs to this node of this cluster; a new folder does from now on.
func (me identity) claim(folder string) error {
	path := filepath.Join(folder, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return me.take(folder, path)
	}
	if err != nil {
		return fmt.Errorf("read whose data folder %s is: %w", folder, err)
	}
	var owner identity
	if err := json.Unmarshal(data, &owner); err != nil || owner.ID == "" {
		return fmt.Errorf("%s does not say whose data folder it is (%q); write {\"id\": …, \"cluster\": …} there if you know, "+
			"or let the server join again as a new one with an empty folder", path, data)
	}
	if owner.Cluster != me.Cluster {
		return fmt.Errorf("data folder %s belongs to cluster %q, not to %q; start the server with the right cluster name or "+
			"with another data folder", folder, owner.Cluster, me.Cluster)
	}
	if owner.ID != me.ID {
		return fmt.Errorf("data folder %s belongs to node %q, not to %q; start the server with id %q, or with another, empty "+
			"data folder: a node keeps its id for life", folder, owner.ID, me.ID, owner.ID)
	}
	return nil
}

// take claims a folder that has no owner. If there is a log without one, somebody removed the file.
func (me identity) take(folder, path string) error {
	if _, err := os.Stat(filepath.Join(folder, storeFile)); err == nil {
		return fmt.Errorf("data folder %s holds a log but not whose it is (%s is gone); write {\"id\": …, \"cluster\": …} "+
			"there if you know, or let the server join again as a new one with an empty folder", folder, path)
	}
	data, err := json.Marshal(me)
	if err != nil {
		return fmt.Errorf("write whose data folder %s is: %w", folder, err)
	}
	if err := whole.Write(path, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	}); err != nil {
		return fmt.Errorf("write whose data folder %s is: %w", folder, err)
	}
	return nil
}
