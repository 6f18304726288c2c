// Package boltstore stores raft's log and votes in one bbolt file. It refuses to open a file that is in use, truncated
// or damaged, where bbolt itself would wait, crash or lose a transaction.
package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/quorate/quorate/cluster/atomicfile"
)

// DefaultLockTimeout is how long Open waits for another process to release the file.
const DefaultLockTimeout = 2 * time.Second

// InUseError says that another process has the file open.
type InUseError struct {
	// Path is the file.
	Path string
}

// Error names the file and what to do.
func (e *InUseError) Error() string {
	return fmt.Sprintf("the data folder %s is in use by another server (%s is locked); stop that one, or "+
		"give this one a "+
		"folder of its own", filepath.Dir(e.Path), filepath.Base(e.Path))
}

// CorruptError says that the file is damaged.
type CorruptError struct {
	// Path is the file.
	Path string
	// Reason says what does not match.
	Reason string
}

// Error names the file and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged: %s; remove the data folder %s and let this server join again as a new one, or "+
		"restore the cluster from a backup when no other server is intact", e.Path, e.Reason, filepath.Dir(e.Path))
}

// Store is raft's log store and stable store in one file. It is safe for concurrent use.
type Store struct {
	*raftboltdb.BoltStore
	path string
}

// Open opens the file at path, or creates it if there is none, and waits up to lockTimeout (0 means DefaultLockTimeout)
// for another process to release it.
//
// It returns an *InUseError if the file is in use, and a *CorruptError if the file was truncated or a page in use is
// damaged. An empty file is corrupt too, because it may have contained a vote. Open reads the whole file once, which
// takes about as long as bbolt itself needs to find its free pages. It does not verify the content of log entries, see
// raftguard.VerifyLog.
func Open(path string, lockTimeout time.Duration) (*Store, error) {
	if lockTimeout <= 0 {
		lockTimeout = DefaultLockTimeout
	}
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		err = createFile(path, lockTimeout)
	} else if err == nil {
		err = verifyLocked(path, lockTimeout)
	}
	if err != nil {
		return nil, err
	}
	inner, err := openBolt(path, lockTimeout)
	if err != nil {
		return nil, err
	}
	return &Store{BoltStore: inner, path: path}, nil
}

func openBolt(path string, lockTimeout time.Duration) (*raftboltdb.BoltStore, error) {
	store, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			Timeout:        lockTimeout,
			NoFreelistSync: true, // the list of free pages would be written with every entry; it is rebuilt at Open
			FreelistType:   bbolt.FreelistMapType,
		},
		MsgpackUseNewTimeFormat: true,
	})
	return store, translateError(path, err)
}

// createFile creates the file under a temporary name first: a file at path is always complete.
func createFile(path string, lockTimeout time.Duration) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("create %s: %w", path, err)
	}
	store, err := openBolt(draft, lockTimeout)
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if err := atomicfile.SyncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync the data folder: %w", err)
	}
	return nil
}

// verifyLocked verifies the file while no other process can write to it. Opening for reading takes bbolt's lock and
// reads nothing but the meta pages.
func verifyLocked(path string, lockTimeout time.Duration) error {
	lock, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err == nil {
		return errors.Join(verifyFile(path), lock.Close())
	}
	err = translateError(path, err)
	var inUse *InUseError
	if errors.As(err, &inUse) {
		return err
	}
	if damage := verifyFile(path); damage != nil { // more specific than bbolt's error
		return damage
	}
	return err
}

// translateError converts a lock timeout into an InUseError. Other errors of bbolt (a full disk, no permission) say
// nothing about the content of the file.
func translateError(path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return &InUseError{Path: path}
	}
	return fmt.Errorf("open %s: %w", path, err)
}
