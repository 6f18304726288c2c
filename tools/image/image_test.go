package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const epoch = "1790000000"

// inputs writes the files that an image is made of, and returns the command line without -out.
func inputs(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"amd64": "binary of amd64", "arm64": "binary of arm64", "authorities": "certificates", "LICENSE": "licence",
		"NOTICE": "notice",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"-version", "v1.2.3", "-commit", "abc", "-reference", "v1.2.3", "-authorities", filepath.Join(dir, "authorities"),
		"-licences", dir, "-binary", "amd64=" + filepath.Join(dir, "amd64"), "-binary",
		"arm64=" + filepath.Join(dir, "arm64"),
	}
}

func buildLayout(t *testing.T, args []string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image")
	if err := run(append(args, "-out", out), epoch); err != nil {
		t.Fatal(err)
	}
	return out
}

func digests(t *testing.T, folder string) map[string][32]byte {
	t.Helper()
	found := map[string][32]byte{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, folder)] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTheSameBytesTwice: what and when it is built decides every byte, and a layout that exists is replaced.
func TestTheSameBytesTwice(t *testing.T) {
	args := inputs(t)
	first := buildLayout(t, args)
	want := digests(t, first)
	if again := digests(t, buildLayout(t, args)); !maps.Equal(want, again) {
		t.Errorf("built twice: %v and %v", want, again)
	}
	if err := os.WriteFile(filepath.Join(first, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(append(args, "-out", first), epoch); err != nil || !maps.Equal(want, digests(t, first)) {
		t.Errorf("built over a layout: %v, %v", digests(t, first), err)
	}
}

// openImages reads the images of a layout by architecture, and checks all digests in it.
func openImages(t *testing.T, folder string) map[string]v1.Image {
	t.Helper()
	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v, want one entry", manifest, err)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	inner, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, m := range inner.Manifests {
		if m.Platform == nil || m.Platform.OS != "linux" {
			t.Errorf("%+v has no platform", m)
			continue
		}
		if images[m.Platform.Architecture], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// TestImages: each image has its binary, the common files with their owners, and the configuration to run it.
func TestImages(t *testing.T) {
	images := openImages(t, buildLayout(t, inputs(t)))
	if got := slices.Sorted(maps.Keys(images)); !slices.Equal(got, []string{"amd64", "arm64"}) {
		t.Fatalf("architectures: %v", got)
	}
	for architecture, image := range images {
		checkFiles(t, image, architecture)
		file, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := file.Config
		if file.Architecture != architecture || file.OS != "linux" || file.Created.UTC().Unix() != 1790000000 {
			t.Errorf("%s: %+v", architecture, file)
		}
		if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/quorate"}) ||
			!slices.Equal(c.Cmd, []string{"server", "run", "--config", "/etc/quorate/quorate.yaml"}) ||
			!maps.Equal(c.Volumes, map[string]struct{}{"/var/lib/quorate": {}}) ||
			c.Labels["org.opencontainers.image.version"] != "v1.2.3" || c.Labels["org.opencontainers.image.revision"] != "abc" {
			t.Errorf("%s: %+v", architecture, c)
		}
	}
}

// checkFiles compares the files of an image with those that it must have.
func checkFiles(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	const want = `drwxr-xr-x 0 etc
-rw-r--r-- 0 etc/group
-rw-r--r-- 0 etc/passwd
drwxr-xr-x 0 etc/quorate
drwxr-xr-x 0 etc/ssl
drwxr-xr-x 0 etc/ssl/certs
-rw-r--r-- 0 etc/ssl/certs/ca-certificates.crt
drwxr-xr-x 0 usr
drwxr-xr-x 0 usr/bin
-rwxr-xr-x 0 usr/bin/quorate
drwxr-xr-x 0 usr/share
drwxr-xr-x 0 usr/share/doc
drwxr-xr-x 0 usr/share/doc/quorate
-rw-r--r-- 0 usr/share/doc/quorate/LICENSE
-rw-r--r-- 0 usr/share/doc/quorate/NOTICE
drwxr-xr-x 0 var
drwxr-xr-x 0 var/lib
drwx------ 65532 var/lib/quorate
`
	var lines []string
	archive := mutate.Extract(image)
	defer func() { _ = archive.Close() }()
	for reader := tar.NewReader(archive); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil || h.Name == "usr/bin/quorate" && string(text) != "binary of "+architecture {
			t.Errorf("%s of %s: %q, %v", h.Name, architecture, text, err)
		}
		if h.Uid != h.Gid || h.ModTime.Unix() != 1790000000 {
			t.Errorf("%s: group %d, time %v", h.Name, h.Gid, h.ModTime)
		}
		lines = append(lines, fmt.Sprintf("%s\x00%v %d %s\n", h.Name, h.FileInfo().Mode(), h.Uid, h.Name))
	}
	slices.Sort(lines)
	var got strings.Builder
	for _, line := range lines {
		_, line, _ = strings.Cut(line, "\x00")
		got.WriteString(line)
	}
	if got.String() != want {
		t.Errorf("files of %s:\n%swant:\n%s", architecture, got.String(), want)
	}
}

// TestRefusals: an image that would lack something is not built.
func TestRefusals(t *testing.T) {
	good := inputs(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "image")
	for says, c := range map[string]struct {
		args  []string
		epoch string
	}{
		"SOURCE_DATE_EPOCH":      {append(slices.Clone(good), "-out", out), ""},
		"-out and at least one":  {good, epoch},
		"is not architecture":    {append(slices.Clone(good), "-out", out, "-binary", "amd64"), epoch},
		"empty is empty":         {append(slices.Clone(good), "-out", out, "-authorities", empty), epoch},
		"file of the image":      {append(slices.Clone(good), "-out", out, "-licences", out), epoch},
		"s390x: binary":          {append(slices.Clone(good), "-out", out, "-binary", "s390x="+out), epoch},
		"provided but not defin": {append(slices.Clone(good), "-out", out, "-user", "0"), epoch},
	} {
		if err := run(c.args, c.epoch); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a layout was written", says)
		}
	}
}
