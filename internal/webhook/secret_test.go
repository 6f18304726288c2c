package webhook

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecrets: a file has one to three secrets and belongs to its owner alone; a message is signed with each.
func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := secretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", minSecret)))
	other := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", maxSecret)))
	for text, want := range map[string]int{
		one: 1, one + "\n" + other + "\n": 2, strings.Repeat(one+"\n", 3): 3, strings.Repeat(one+"\n", 4): 0,
		"": 0, "short": 0,
		base64.StdEncoding.EncodeToString([]byte("too short")): 0, other + "AAAA": 0,
	} {
		if err := os.WriteFile(filepath.Join(dir, "s"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := readSecrets(dir, "s")
		if len(list) != want || (err == nil) != (want > 0) {
			t.Errorf("%q has %d secrets, %v; want %d", text, len(list), err, want)
		}
		if signed := signMessage(list, "id", 7, []byte("{}")); want > 0 && strings.Count(signed, "v1,") != want {
			t.Errorf("%d secrets sign %q", want, signed)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "s"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s", "other"} {
		if _, err := readSecrets(dir, name); err == nil || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readSecrets("", "s"); err == nil {
		t.Error("secrets without a folder")
	}
}
