// Package atomicfile writes files that after a crash are there with all of their content, or not at all.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write makes the file at path out of what write gives, in place of one that is there. Until all of it is on disk the content
// has another, hidden name in the same folder; if write or the disk fails, that goes and the file at path is as it was.
func Write(path string, write func(io.Writer) error) error {
	folder := filepath.Dir(path)
	draft, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(draft)
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return SyncFolder(folder)
}

// SyncFolder makes durable which names a folder holds: without it, a crash may undo a rename.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
