package pki

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

// TestBootstrapSecret: each authority has another secret of 256 bits, on one line of a private file that stays.
func TestBootstrapSecret(t *testing.T) {
	t.Parallel()
	var before string
	for range 2 {
		folder := newTestAuthority(t, "blue").Folder
		text, err := os.ReadFile(folder.BootstrapSecret())
		if err != nil {
			t.Fatal(err)
		}
		secret, err := base64.RawURLEncoding.DecodeString(strings.TrimSuffix(string(text), "\n"))
		if err != nil || len(secret) != 32 || string(text) == before {
			t.Errorf("%d bytes, %v, like the one before: %v", len(secret), err, string(text) == before)
		}
		before = string(text)
		if info, err := os.Stat(folder.BootstrapSecret()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
}
