package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/cluster/boltstore"
)

const (
	lockFile  = "lock"
	lockRetry = 50 * time.Millisecond
)

// folderLock prevents a second server from using a data folder, even if the folder has no raft.db. The system releases
// the lock when the process ends. The empty lock file stays.
type folderLock struct{ file *os.File }

// lockFolder waits for a short time, because the other server may be about to stop.
func lockFolder(folder string) (*folderLock, error) {
	path := filepath.Join(folder, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	for deadline := time.Now().Add(boltstore.DefaultLockTimeout); ; time.Sleep(lockRetry) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return &folderLock{file}, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock the data folder with %s: %w", path, err), file.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(&boltstore.InUseError{Path: path}, file.Close())
		}
	}
}

// release is idempotent.
func (l *folderLock) release() error {
	if err := l.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// freeSpace counts the bytes available to an unprivileged user.
func freeSpace(folder string) func() (int64, error) {
	return func() (int64, error) {
		var s unix.Statfs_t
		if err := unix.Statfs(folder, &s); err != nil {
			return 0, fmt.Errorf("get the free space of %s: %w", folder, err)
		}
		//nolint:unconvert // the types differ between systems; 8 EiB are enough
		return int64(s.Bavail) * int64(s.Bsize), nil
	}
}
