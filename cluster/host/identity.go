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

// identity says which node a data folder belongs to. Votes are counted by id, so a folder that changed its id could
// vote twice.
type identity struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// Store names the raft.db that belongs to the folder and contains the same name: another raft.db, or a new one, does
	// not know the votes and acknowledgements of the node. Empty in folders of versions before 0.6.
	Store string `json:"store,omitempty"`
	// Lost describes what the folder has lost, until the node was admitted again and holds state.
	Lost string `json:"lost,omitempty"`
	// Epoch is that of the folder. Empty if an earlier version wrote the file.
	Epoch epoch `json:"epoch,omitempty"`
}

// readIdentity reads the identity of a folder; the zero value if it has none.
func readIdentity(folder string) (identity, error) {
	path := filepath.Join(folder, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, fmt.Errorf("read the identity of data folder %s: %w", folder, err)
	}
	var owner identity
	if err := json.Unmarshal(data, &owner); err != nil || owner.ID == "" {
		return identity{}, fmt.Errorf("%s does not identify the node of the data folder (%q); write {\"id\": …, "+
			"\"cluster\": …} there if you know, or let the server join again as a new one with an empty folder", path,
			data)
	}
	return owner, nil
}

// FolderIdentity says which node a data folder belongs to.
type FolderIdentity struct {
	ID, Cluster string
	// Store is a random name that no other data folder has; empty if no server has used the folder yet.
	Store string
}

// ReadIdentity reads which node a data folder belongs to; the zero value for a folder that no server has used. A server
// may be using the folder.
func ReadIdentity(folder string) (FolderIdentity, error) {
	owner, err := readIdentity(folder)
	return FolderIdentity{ID: owner.ID, Cluster: owner.Cluster, Store: owner.Store}, err
}

// checkOwner returns an error if owner, the identity in a folder, is another node or cluster.
func (i identity) checkOwner(folder string, owner identity) error {
	switch {
	case owner.ID == "":
		return nil
	case owner.Cluster != i.Cluster:
		return fmt.Errorf(
			"data folder %s belongs to cluster %q, not to %q; start the server with the right cluster name or "+
				"with another data folder", folder, owner.Cluster, i.Cluster)
	case owner.ID != i.ID:
		return fmt.Errorf(
			"data folder %s belongs to node %q, not to %q; start the server with id %q, or with another, "+
				"empty data folder: the id of a node never changes", folder, owner.ID, i.ID, owner.ID)
	}
	return nil
}

// writeFile writes the identity durably.
func (i identity) writeFile(folder string) error {
	data, err := json.Marshal(i)
	if err == nil {
		err = atomicfile.Write(filepath.Join(folder, identityFile), func(w io.Writer) error {
			_, err := w.Write(append(data, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write the identity of data folder %s: %w", folder, err)
	}
	return nil
}
