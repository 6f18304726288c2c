// Package atomicfile writes files that exist after a crash either with all of their content or not at all.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write creates the file at path from what write produces, and replaces an existing one. Until the content is on disk
// it has a hidden temporary name in the same folder; if write or the disk fails, the temporary file is removed and the
// file at path is unchanged.
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
