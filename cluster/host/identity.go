package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/cluster/atomicfile"
	"github.com/quorate/quorate/fsm"
)

const (
	identityFile = "identity.json"
	// folderFormat is the format of data folders, not of the entries in them. It rises if a released version could not
	// open the folders of a later one.
	folderFormat = 1
)

// identity says which node a data folder belongs to. Votes are counted by id, so a folder that changed its id could
// vote twice.
type identity struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// Format is folderFormat. The folders of development builds, before the first release, have none.
	Format int `json:"format"`
	// Store names the raft.db that belongs to the folder and contains the same name: another raft.db, or a new one, does
	// not know the votes and acknowledgements of the node.
	Store string `json:"store,omitempty"`
	// Lost describes what the folder has lost, until the node was admitted again and has state.
	Lost string `json:"lost,omitempty"`
	// Epoch is that of the folder. Empty if the file was written by hand.
	Epoch epoch `json:"epoch,omitempty"`
}

// readIdentity returns the zero value if the folder has none.
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
		return identity{}, fmt.Errorf("%s does not identify the node of the data folder (%q); write %s there if you know, "+
			"or let the server join again as a new one with an empty folder", path, data, identityByHand)
	}
	return owner, owner.checkFormat(folder)
}

// identityByHand is how an operator writes an identity.
const identityByHand = `{"id": …, "cluster": …, "format": 1}`

func (i identity) checkFormat(folder string) error {
	switch {
	case i.Format == 0:
		return fmt.Errorf("data folder %s cannot be opened: %w. If %s was written by hand, it lacks \"format\": 1", folder,
			fsm.ErrDevelopmentBuild, identityFile)
	case i.Format > folderFormat:
		return fmt.Errorf("data folder %s has format %d, but this version understands 1 to %d; run a newer version", folder,
			i.Format, folderFormat)
	}
	return nil
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
	i.Format = folderFormat
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
