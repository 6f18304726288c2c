package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/cluster/atomicfile"
)

const identityFile = "identity.json"

// identity is whose data folder it is. A vote counts once for an id, so a folder that changed its id could vote twice.
type identity struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// Store names the one raft.db that belongs to the folder, which has the same text in it: another one, or one that was
	// made anew, does not know what the node has promised. Empty in folders of versions before 0.6.
	Store string `json:"store,omitempty"`
	// Lost says what the folder has lost; it stays until the node was taken in again and holds state.
	Lost string `json:"lost,omitempty"`
}

// readIdentity reads whose folder it is; the zero value if it does not say.
func readIdentity(folder string) (identity, error) {
	path := filepath.Join(folder, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, fmt.Errorf("read whose data folder %s is: %w", folder, err)
	}
	var owner identity
	if err := json.Unmarshal(data, &owner); err != nil || owner.ID == "" {
		return identity{}, fmt.Errorf("%s does not say whose data folder it is (%q); write {\"id\": …, \"cluster\": …} there if you know, "+
			"or let the server join again as a new one with an empty folder", path, data)
	}
	return owner, nil
}

// checkOwner refuses the folder of another node or cluster.
func (me identity) checkOwner(folder string, owner identity) error {
	switch {
	case owner.ID == "":
		return nil
	case owner.Cluster != me.Cluster:
		return fmt.Errorf("data folder %s belongs to cluster %q, not to %q; start the server with the right cluster name or "+
			"with another data folder", folder, owner.Cluster, me.Cluster)
	case owner.ID != me.ID:
		return fmt.Errorf("data folder %s belongs to node %q, not to %q; start the server with id %q, or with another, empty "+
			"data folder: a node keeps its id for life", folder, owner.ID, me.ID, owner.ID)
	}
	return nil
}

// writeFile makes it durable whose folder it is.
func (me identity) writeFile(folder string) error {
	data, err := json.Marshal(me)
	if err == nil {
		err = atomicfile.Write(filepath.Join(folder, identityFile), func(w io.Writer) error {
			_, err := w.Write(append(data, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write whose data folder %s is: %w", folder, err)
	}
	return nil
}
