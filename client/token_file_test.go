package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func writeToken(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTokenFileIsReadAgain: the token follows the file, which is written in place, replaced, or reached by symbolic
// links as Kubernetes does it. The file is looked at once a second at most.
func TestTokenFileIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path, data := filepath.Join(dir, "token"), filepath.Join(dir, "..data")
		for _, version := range []string{"v1", "v2"} {
			if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
				t.Fatal(err)
			}
			writeToken(t, filepath.Join(dir, version, "token"), version+"-token\n")
		}
		link := func(version string) {
			if err := os.Symlink(version, data+"_tmp"); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(data+"_tmp", data); err != nil {
				t.Fatal(err)
			}
		}
		link("v1")
		if err := os.Symlink("..data/token", path); err != nil {
			t.Fatal(err)
		}
		g := newGate(newFakeCluster(), "v1-token")
		c := newClient(t, playServers, client.WithHTTPClient(g), client.WithTokenFile(path), client.WithInsecureToken())
		expect := func(when, token string) {
			t.Helper()
			g.set(token)
			if _, err := c.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{Id: when}); err != nil {
				t.Errorf("%s: the token is not %s: %v", when, token, err)
			}
		}
		expect("first", "v1-token")
		link("v2")
		expect("within-a-second", "v1-token")
		time.Sleep(time.Second)
		expect("after-a-second", "v2-token")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		expect("while-it-is-gone", "v2-token")
		writeToken(t, path, "  v3-token  \n")
		time.Sleep(time.Second)
		expect("a-file-again", "v3-token")
		writeToken(t, path, "two words\n")
		time.Sleep(time.Second)
		expect("while-it-is-malformed", "v3-token")
		writeToken(t, path, "v4-token\n")
		time.Sleep(time.Second)
		expect("written-in-place", "v4-token")
	})
}

func TestTokenFilesThatNewRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		writeToken(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	for path, says := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "directory",
		write("empty", "\n"):       "empty",
		write("words", secretToken+" and more\n"):                       "alone on one line",
		write("long", secretToken+strings.Repeat("x", 8<<10)+"\n"):      "more than 8192",
		write("endless", secretToken+strings.Repeat("x", 100_000)+"\n"): "more than 8192",
	} {
		_, err := client.New([]string{"127.0.0.1"}, client.WithTokenFile(path))
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) ||
			strings.Contains(err.Error(), secretToken) {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	longest := write("longest", strings.Repeat("x", 8<<10)+"\r\n")
	if _, err := client.New([]string{"127.0.0.1"}, client.WithTokenFile(longest)); err != nil {
		t.Errorf("a token of 8 KiB: %v", err)
	}
}
