//go:build unix

package atomicfile

import (
	"errors"
	"os"
)

// SyncFolder makes the directory entries of a folder durable: without it, a crash may undo a rename.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
