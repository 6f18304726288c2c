package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCertificatesOfCallersAreReadInOnePlace: what a connection says of its other side is not verified where the server asks
// for nothing, so only package pki, which verifies it, may look at it.
func TestCertificatesOfCallersAreReadInOnePlace(t *testing.T) {
	const root = "../.."
	readers := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(".PeerCertificates")) && !bytes.Contains(text, []byte(".VerifiedChains")) {
			return err
		}
		if readers++; filepath.Dir(path) != filepath.Join(root, "pki") {
			t.Errorf("%s reads the certificates of a connection: ask pki.Store who is on the other side", path)
		}
		return nil
	})
	if err != nil || readers == 0 {
		t.Errorf("%d files read certificates of connections: %v", readers, err)
	}
}
