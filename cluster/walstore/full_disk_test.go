package walstore_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/walstore"
)

// faultyFiles is a file system on which creating files, or syncing them, fails on demand.
type faultyFiles struct {
	types.VFS

	full, unsynced atomic.Bool
}

func (f *faultyFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if f.full.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := f.VFS.Create(dir, name, size)
	return &faultyFile{file, f}, err
}

func (f *faultyFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	file, err := f.VFS.OpenWriter(dir, name)
	return &faultyFile{file, f}, err
}

type faultyFile struct {
	types.WritableFile
	files *faultyFiles
}

func (f *faultyFile) Sync() error {
	if f.files.unsynced.Load() {
		return syscall.EIO
	}
	return f.WritableFile.Sync()
}

func (l *testLog) openOn(files types.VFS) {
	l.t.Helper()
	l.must(l.Close())
	config := l.config()
	config.Files = files
	store, err := walstore.Open(config)
	l.must(err)
	l.Store, l.log = store, raftguard.NewChecksum(store)
	l.t.Cleanup(func() { _ = store.Close() })
}

// TestAFullDiskEndsTheLog: when no next segment can be made, an append fails with the reason, and everything that was
// acknowledged is there once there is space.
func TestAFullDiskEndsTheLog(t *testing.T) {
	l := newLog(t)
	files := &faultyFiles{VFS: fs.New()}
	l.openOn(files)
	files.full.Store(true)
	acknowledged, err := uint64(0), error(nil)
	for acknowledged < 10_000 {
		if err = l.log.StoreLog(&raft.Log{Index: acknowledged + 1, Term: 1, Data: make([]byte, 500)}); err != nil {
			break
		}
		acknowledged++
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "next segment") || acknowledged < 10 {
		t.Fatalf("after %d entries: %v", acknowledged, err)
	}
	l.kill()
	l.must(l.openAndExpect(acknowledged))
	l.appendBatches(5)
	l.must(raftguard.VerifyLog(l.log, 0))
}

// TestAFailedSyncAcknowledgesNothing: an append whose sync fails is an error, and what was acknowledged before stays.
func TestAFailedSyncAcknowledgesNothing(t *testing.T) {
	l := newLog(t)
	files := &faultyFiles{VFS: fs.New()}
	l.openOn(files)
	l.appendBatches(3)
	mark := string(l.read()[l.markPath()])
	files.unsynced.Store(true)
	if err := l.log.StoreLog(&raft.Log{Index: 10, Term: 1}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("an append without a sync: %v", err)
	}
	if string(l.read()[l.markPath()]) != mark {
		t.Error("the mark counts an entry that was not synced")
	}
	l.kill()
	l.must(l.open())
	if first, last := l.bounds(); first != 1 || last < 9 {
		t.Errorf("the log reaches from %d to %d, want 1 to 9 or 10", first, last)
	}
}

// TestReadersBesideTheWriter reads while entries are appended and compacted, over rotations.
func TestReadersBesideTheWriter(t *testing.T) {
	l := newLog(t)
	l.appendBatches(1)
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !stop.Load() {
				first, err1 := l.FirstIndex()
				last, err2 := l.LastIndex()
				if err := errors.Join(err1, err2); err != nil {
					t.Error(err)
					return
				}
				for i := first; i <= last; i++ {
					var e raft.Log
					if err := l.log.GetLog(i, &e); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
						t.Errorf("entry %d: %v", i, err)
					}
				}
			}
		})
	}
	for range 60 {
		l.appendBatches(2)
		first, last := l.bounds()
		if last > 40 {
			l.must(l.log.DeleteRange(first, last-40))
		}
	}
	stop.Store(true)
	readers.Wait()
}
