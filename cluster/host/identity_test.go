package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestADataFolderKeepsItsOwner(t *testing.T) {
	blue := identity{ID: "n1", Cluster: "blue"}
	cases := []struct {
		name   string
		file   string // content of identity.json; empty for none
		store  string // content of raft.db; empty for none
		me     identity
		refuse string // part of the error; empty if the folder may be used
	}{
		{name: "a new folder belongs to the first node that opens it", me: blue},
		{name: "its owner may come back", file: `{"id":"n1","cluster":"blue","format":1}`, me: blue},
		{
			name: "another node may not use it", file: `{"id":"n1","cluster":"blue","format":1}`,
			me:     identity{ID: "n2", Cluster: "blue"},
			refuse: `belongs to node "n1", not to "n2"; start the server with id "n1"`,
		},
		{
			name: "another cluster may not use it", file: `{"id":"n1","cluster":"blue","format":1}`,
			me:     identity{ID: "n1", Cluster: "green"},
			refuse: `belongs to cluster "blue", not to "green"`,
		},
		{
			name: "a folder of a development build is refused", file: `{"id":"n1","cluster":"blue","store":"S","epoch":"E"}`,
			me: blue, refuse: "a development build of Quorate from before the first release wrote it",
		},
		{
			name: "a folder of a newer format is refused", file: `{"id":"n1","cluster":"blue","format":2}`, me: blue,
			refuse: "has format 2, but this version understands 1 to 1; run a newer version",
		},
		{name: "half a file names no node", file: `{"id":"n`, me: blue, refuse: "does not identify the node"},
		{name: "an empty owner names no node", file: `{}`, me: blue, refuse: "does not identify the node"},
		{name: "a damaged store is refused", store: "log", me: blue, refuse: "is damaged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, identityFile)
			if c.file != "" {
				writeIdentity(t, path, c.file)
			}
			if c.store != "" {
				writeIdentity(t, filepath.Join(folder, storeFile), c.store)
			}
			for range 2 {
				f, err := openFolder(folder, c.me, "", hclog.NewNullLogger())
				if err == nil {
					err = f.close()
				}
				if c.refuse == "" {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("got %v, want an error with %q", err, c.refuse)
				}
				if after, _ := os.ReadFile(path); string(after) != c.file {
					t.Errorf("the refused start changed the file to %q", after)
				}
			}
		})
	}
}

func writeIdentity(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
