package server

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBootstrapSecret(t *testing.T) {
	const good = "0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string // part of the error; empty if there is none
	}{
		"good":             {good, 0o600, ""},
		"read-only":        {good, 0o400, ""},
		"with a new line":  {good + "\n", 0o600, ""},
		"for its group":    {good, 0o640, "chmod 0600"},
		"world-readable":   {good, 0o604, "chmod 0600"},
		"empty":            {"", 0o600, "has 0 bytes"},
		"too short":        {good[1:], 0o600, "has 31 bytes; 32 to 128"},
		"as long as it is": {strings.Repeat("x", maxBootstrapSecret), 0o600, ""},
		"too long":         {strings.Repeat("x", maxBootstrapSecret+1), 0o600, "has 129 bytes"},
		"far too long":     {strings.Repeat("x", 1<<20), 0o600, "has 256 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bootstrap.secret")
			if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil { // whatever the umask
				t.Fatal(err)
			}
			hash, err := loadBootstrapSecret(path)
			if c.says == "" {
				if want := sha256.Sum256([]byte(strings.TrimSpace(c.text))); err != nil || hash != want {
					t.Errorf("got %x, %v", hash, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || hash != [sha256.Size]byte{} {
				t.Errorf("got %x, %v, want an error that says %q", hash, err, c.says)
			}
		})
	}
	if hash, err := loadBootstrapSecret(""); err != nil || hash != [sha256.Size]byte{} {
		t.Errorf("without a file: %x, %v", hash, err)
	}
	if _, err := loadBootstrapSecret(t.TempDir()); err == nil {
		t.Error("a folder is a secret")
	}
	if _, err := loadBootstrapSecret(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is a secret")
	}
}

// TestPrivateFiles: a file is for its owner alone, except that a group may read what another user owns.
func TestPrivateFiles(t *testing.T) {
	for mode, want := range map[os.FileMode]struct{ own, others bool }{
		0o400: {true, true}, 0o600: {true, true}, 0o440: {false, true}, 0o640: {false, true},
		0o460: {false, false}, 0o450: {false, false}, 0o404: {false, false}, 0o444: {false, false},
		os.ModeDir | 0o400: {false, false},
	} {
		if own, others := isPrivate(mode, false), isPrivate(mode, true); own != want.own || others != want.others {
			t.Errorf("%v: own %v, of another user %v, want %+v", mode, own, others, want)
		}
	}
	own, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.Stat("/")
	if err != nil {
		t.Fatal(err)
	}
	if isOthersFile(own) || isOthersFile(root) != (os.Geteuid() != 0) {
		t.Errorf("of another user: own folder %v, root's %v", isOthersFile(own), isOthersFile(root))
	}
}
