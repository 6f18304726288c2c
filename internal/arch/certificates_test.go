package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// certificateFields are what a connection says of its peer.
var certificateFields = regexp.MustCompile(`\.(PeerCertificates|VerifiedChains)\b`)

// TestCertificatesOfCallersAreReadInOnePlace checks that only package pki reads the certificates of a connection,
// because a server that requests no certificates gets unverified ones, and pki verifies them.
func TestCertificatesOfCallersAreReadInOnePlace(t *testing.T) {
	readers := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !certificateFields.Match(text) {
			return err
		}
		if readers++; filepath.Dir(path) != filepath.Join(root, "internal", "pki") {
			t.Errorf("%s reads the certificates of a connection: ask pki.Store for the identity of the peer", path)
		}
		return nil
	})
	if err != nil || readers == 0 {
		t.Errorf("%d files read certificates of connections: %v", readers, err)
	}
}
