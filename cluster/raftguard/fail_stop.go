package raftguard

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// StoreFailedError says that a write to the data folder failed, so that nothing may be written to it any more.
type StoreFailedError struct {
	// Operation is the store call that failed first.
	Operation string
	// Cause is its error.
	Cause error
}

// Error names the failed operation and what to do.
func (e *StoreFailedError) Error() string {
	return fmt.Sprintf("the data folder failed in %s: %v; this server stops because what it wrote since may be lost; "+
		"check the disk (space, cables, kernel log), then start the server again", e.Operation, e.Cause)
}

// Unwrap returns the store's own error.
func (e *StoreFailedError) Unwrap() error { return e.Cause }

// FailStopStore is a log and stable store for raft that fails permanently on the first error.
//
// raft logs most store errors and continues, with its memory ahead of the disk. After a failed write or sync the
// content of the disk is unknown, so a server must not answer, vote or lead based on it: it stops, and restarts from
// what can be read back.
type FailStopStore struct {
	logs    raft.LogStore
	stable  raft.StableStore
	onError func(error)

	mu     sync.Mutex // held during writes: none may follow a failed one
	failed *StoreFailedError
}

var (
	_ raft.LogStore          = (*FailStopStore)(nil)
	_ raft.StableStore       = (*FailStopStore)(nil)
	_ raft.MonotonicLogStore = (*FailStopStore)(nil)
)

// NewFailStopStore wraps both stores, which may be the same. onError is called exactly once, with a *StoreFailedError,
// on a goroutine of its own, because the failing call usually runs on raft's main loop, which a shutdown waits for. It
// should stop the process with a non-zero exit code. raft may panic first if it cannot store a term.
func NewFailStopStore(logs raft.LogStore, stable raft.StableStore, onError func(error)) *FailStopStore {
	return &FailStopStore{logs: logs, stable: stable, onError: onError}
}

// Err returns the *StoreFailedError of the first failed operation, or nil.
func (l *FailStopStore) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		return nil
	}
	return l.failed
}

// tryWrite runs one write unless an earlier one failed. If it fails, no later write is run.
func (l *FailStopStore) tryWrite(operation string, do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if err := do(); err != nil {
		l.failLocked(operation, err)
		return l.failed
	}
	return nil
}

// failLocked must be called with mu held.
func (l *FailStopStore) failLocked(operation string, cause error) {
	if l.failed != nil {
		return
	}
	l.failed = &StoreFailedError{Operation: operation, Cause: cause}
	go l.onError(l.failed)
}

// StoreLog appends one entry.
func (l *FailStopStore) StoreLog(entry *raft.Log) error {
	return l.tryWrite("StoreLog", func() error { return l.logs.StoreLog(entry) })
}

// StoreLogs appends entries.
func (l *FailStopStore) StoreLogs(entries []*raft.Log) error {
	return l.tryWrite("StoreLogs", func() error { return l.logs.StoreLogs(entries) })
}

// DeleteRange removes the entries first to last, inclusive.
func (l *FailStopStore) DeleteRange(first, last uint64) error {
	return l.tryWrite("DeleteRange", func() error { return l.logs.DeleteRange(first, last) })
}

// Set stores a value in the stable store.
func (l *FailStopStore) Set(key, value []byte) error {
	return l.tryWrite("Set", func() error { return l.stable.Set(key, value) })
}

// SetUint64 stores a number in the stable store.
func (l *FailStopStore) SetUint64(key []byte, value uint64) error {
	return l.tryWrite("SetUint64", func() error { return l.stable.SetUint64(key, value) })
}

// GetLog reads one entry. An existing entry that cannot be read fails the store as well, because raft would retry or
// panic; a missing entry is not a failure.
func (l *FailStopStore) GetLog(index uint64, entry *raft.Log) error {
	err := l.logs.GetLog(index, entry)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failLocked("GetLog", err)
	return err
}

// FirstIndex returns the first index of the log, 0 when it is empty.
func (l *FailStopStore) FirstIndex() (uint64, error) { return l.logs.FirstIndex() }

// LastIndex returns the last index of the log, 0 when it is empty.
func (l *FailStopStore) LastIndex() (uint64, error) { return l.logs.LastIndex() }

// Get reads a value from the stable store. Its errors are returned unchanged, because raft recognizes a missing key
// only by the store's own error.
func (l *FailStopStore) Get(key []byte) ([]byte, error) { return l.stable.Get(key) }

// GetUint64 reads a number from the stable store. Its errors are returned unchanged, as with Get.
func (l *FailStopStore) GetUint64(key []byte) (uint64, error) { return l.stable.GetUint64(key) }

// IsMonotonic reports whether the wrapped log store tolerates no gaps.
func (l *FailStopStore) IsMonotonic() bool { return isMonotonic(l.logs) }

func isMonotonic(logs raft.LogStore) bool {
	monotonic, ok := logs.(raft.MonotonicLogStore)
	return ok && monotonic.IsMonotonic()
}
