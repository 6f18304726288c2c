package pki

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseGossipKeys(t *testing.T) {
	t.Parallel()
	a, b := NewGossipKey(), NewGossipKey()
	for name, tc := range map[string]struct {
		text, says string
		keys       int
	}{
		"one":                           {a, "", 1},
		"two, with words":               {"# the new one\n" + a + "\n\n  " + b + "\r\n", "", 2},
		"the smallest":                  {"AAAAAAAAAAAAAAAAAAAAAA==", "", 1},
		"none":                          {"# nothing\n", "there is none", 0},
		"empty":                         {"", "there is none", 0},
		"no base64":                     {a + "\nsecret!\n", "line 2 is not base64", 0},
		"a size that no cipher has":     {"AAAA", "line 1 has 3 bytes", 0},
		"twice":                         {a + "\n" + b + "\n" + a, "line 3 is the same", 0},
		"two on a line":                 {a + " " + b, "line 1 is not base64", 0},
		"too many":                      {manyKeys(17), "line 17 is one key more than 16", 0},
		"as many as may be":             {manyKeys(16), "", 16},
		"of the alphabet for addresses": {strings.Repeat("_", 43) + "=", "line 1 is not base64", 0},
	} {
		keys, err := ParseGossipKeys([]byte(tc.text))
		if tc.says == "" && (err != nil || len(keys) != tc.keys) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
		if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tc.says)
		}
		if err != nil && strings.Contains(err.Error(), "secret!") {
			t.Errorf("%s: the error gives the key away: %v", name, err)
		}
	}
}

func manyKeys(count int) string {
	var text strings.Builder
	for range count {
		text.WriteString(NewGossipKey() + "\n")
	}
	return text.String()
}

func TestWorldReadableKeysAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gossip.keys")
	if err := os.WriteFile(path, []byte(NewGossipKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, allowed := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o400: true, 0o644: false, 0o604: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadGossipKeys(path); (err == nil) != allowed {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

// FuzzGossipKeys: keys that are read from an arbitrary file are valid for the cipher and distinct.
func FuzzGossipKeys(f *testing.F) {
	f.Add([]byte(NewGossipKey()))
	f.Add([]byte("# a\n\nAAAAAAAAAAAAAAAAAAAAAA==\r\nAAAA\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := ParseGossipKeys(text)
		if (err == nil) != (len(keys) > 0) || len(keys) > mostGossipKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		seen := map[string]bool{}
		for _, key := range keys {
			if seen[string(key)] || len(key) != 16 && len(key) != 24 && len(key) != 32 {
				t.Fatalf("read %x", keys)
			}
			seen[string(key)] = true
		}
	})
}
