package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADataFolderKeepsItsOwner(t *testing.T) {
	cases := []struct {
		name   string
		file   string // content of identity.json; empty for none
		hasLog bool
		me     identity
		refuse string // part of the error; empty if the folder may be used
	}{
		{name: "a new folder belongs to whoever comes first", me: identity{"n1", "blue"}},
		{name: "its owner may come back", file: `{"id":"n1","cluster":"blue"}`, hasLog: true, me: identity{"n1", "blue"}},
		{
			name: "another node may not use it", file: `{"id":"n1","cluster":"blue"}`, me: identity{"n2", "blue"},
			refuse: `belongs to node "n1", not to "n2"; start the server with id "n1"`,
		},
		{
			name: "another cluster may not use it", file: `{"id":"n1","cluster":"blue"}`, me: identity{"n1", "green"},
			refuse: `belongs to cluster "blue", not to "green"`,
		},
		{name: "half a file names nobody", file: `{"id":"n`, me: identity{"n1", "blue"}, refuse: "does not say whose"},
		{name: "an empty owner is nobody", file: `{}`, me: identity{"n1", "blue"}, refuse: "does not say whose"},
		{name: "a log without an owner is suspect", hasLog: true, me: identity{"n1", "blue"}, refuse: "is gone"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, identityFile)
			if c.file != "" {
				write(t, path, c.file)
			}
			if c.hasLog {
				write(t, filepath.Join(folder, storeFile), "log")
			}
			err := c.me.claim(folder)
			if c.refuse == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := c.me.claim(folder); err != nil {
					t.Errorf("the second start: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("got %v, want an error with %q", err, c.refuse)
			}
			if after, _ := os.ReadFile(path); string(after) != c.file {
				t.Errorf("the refused start changed the file to %q", after)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
