package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// space tells the bytes that are left for an ordinary user in the file system of a folder.
func space(folder string) func() (int64, error) {
	return func() (int64, error) {
		var s unix.Statfs_t
		if err := unix.Statfs(folder, &s); err != nil {
			return 0, fmt.Errorf("ask for the space left in %s: %w", folder, err)
		}
		return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems; 8 EiB are enough
	}
}
