package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the numeric user and group of the server. Kubernetes cannot check that a named one is not root.
const user = 65532

// Paths in the image.
const (
	binaryPath = "usr/bin/quorate"
	dataPath   = "var/lib/quorate/"
)

type entry struct {
	path  string
	mode  int64
	owner int
	text  []byte
}

// commonEntries are all files but the binary, the same for all architectures. Folders come before what is in them.
func (b *build) commonEntries() ([]entry, error) {
	account := fmt.Sprintf("quorate:x:%d:%d:Quorate:/%s:/sbin/nologin\n", user, user, dataPath)
	group := fmt.Sprintf("quorate:x:%d:\n", user)
	entries := []entry{
		{"etc/", 0o755, 0, nil},
		{"etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/root:/sbin/nologin\n" + account)},
		{"etc/group", 0o644, 0, []byte("root:x:0:\n" + group)},
		{"etc/quorate/", 0o755, 0, nil},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
	}
	read := func(path, from string) error {
		text, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("file of the image: %w", err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return fmt.Errorf("file of the image: %s is empty", from)
		}
		entries = append(entries, entry{path, 0o644, 0, text})
		return nil
	}
	if err := read("etc/ssl/certs/ca-certificates.crt", b.authorities); err != nil {
		return nil, err
	}
	for _, folder := range []string{"usr/", "usr/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/quorate/"} {
		entries = append(entries, entry{folder, 0o755, 0, nil})
	}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		if err := read("usr/share/doc/quorate/"+name, filepath.Join(b.licences, name)); err != nil {
			return nil, err
		}
	}
	return append(entries, entry{"var/", 0o755, 0, nil}, entry{"var/lib/", 0o755, 0, nil},
		entry{dataPath, 0o700, user, nil}), nil
}

func newLayer(entries []entry, at time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.text)), ModTime: at,
		}
		if e.path[len(e.path)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", e.path, err)
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, fmt.Errorf("%s: %w", e.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
