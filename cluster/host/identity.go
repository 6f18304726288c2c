package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if err := writeWhole(folder, path, append(data, '\n')); err != nil {
		return fmt.Errorf("write whose data folder %s is: %w", folder, err)
	}
	return nil
}

// writeWhole makes a file that after a crash is there with all of its content, or not at all.
func writeWhole(folder, path string, data []byte) error {
	draft, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = draft.Write(data)
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return syncFolder(folder)
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
