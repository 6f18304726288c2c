package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/cluster/atomicfile"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// only checks that a folder contains exactly one file, and its content.
func only(t *testing.T, path, want string) {
	t.Helper()
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != 1 {
		t.Fatalf("there is %v, %v; want %s alone", names, err, filepath.Base(path))
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("it says %q, %v; want %q", got, err, want)
	}
}

func TestWriteReplacesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.json")
	for _, content := range []string{"first", "second, which is longer", ""} {
		if err := atomicfile.Write(path, text(content)); err != nil {
			t.Fatal(err)
		}
		only(t, path, content)
	}
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.json")
	if err := atomicfile.Write(path, text("before")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the source ran dry")
	err := atomicfile.Write(path, func(w io.Writer) error { return errors.Join(text("half")(w), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("%v does not say why", err)
	}
	only(t, path, "before")
}

func TestWriteNeedsAFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "identity.json")
	if err := atomicfile.Write(missing, text("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that the folder does not exist", err)
	}
	if err := atomicfile.SyncFolder(filepath.Dir(missing)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that the folder does not exist", err)
	}
}
