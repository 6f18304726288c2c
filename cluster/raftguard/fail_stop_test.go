package raftguard_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

func TestLatchClosesOnTheFirstErrorOfAnyOperation(t *testing.T) {
	entry := &raft.Log{Index: 1, Term: 1}
	operations := map[string]func(*raftguard.FailStopStore) error{
		"StoreLogs":   func(l *raftguard.FailStopStore) error { return l.StoreLog(entry) },
		"DeleteRange": func(l *raftguard.FailStopStore) error { return l.DeleteRange(1, 1) },
		"Set k":       func(l *raftguard.FailStopStore) error { return l.Set([]byte("k"), []byte("v")) },
		"SetUint64 k": func(l *raftguard.FailStopStore) error { return l.SetUint64([]byte("k"), 1) },
		"GetLog":      func(l *raftguard.FailStopStore) error { return l.GetLog(1, &raft.Log{}) },
	}
	for operation, run := range operations {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &faultyDisk{InmemStore: raft.NewInmemStore()}
				var reported []error
				store := raftguard.NewFailStopStore(disk, disk, func(err error) { reported = append(reported, err) })
				if err := store.StoreLogs([]*raft.Log{entry}); err != nil || store.Err() != nil {
					t.Fatalf("a good write: %v, store: %v", err, store.Err())
				}
				disk.failNext(operation)
				if err := run(store); !errors.Is(err, errDisk) {
					t.Errorf("the failing call returned %v", err)
				}
				for range 3 {
					if err := store.SetUint64([]byte("term"), 2); !errors.Is(err, errDisk) {
						t.Errorf("a later write returned %v", err)
					}
				}
				synctest.Wait()
				var failed *raftguard.StoreFailedError
				if len(reported) != 1 || !errors.As(reported[0], &failed) {
					t.Fatalf("told %v, want one *StoreFailedError", reported)
				}
				if n, _ := disk.writesAfterFailure(); n != 0 {
					t.Errorf("%d writes reached the disk after it failed", n)
				}
			})
		})
	}
}

func TestLatchTakesAMissingEntryForAnAnswer(t *testing.T) {
	disk := raft.NewInmemStore()
	store := raftguard.NewFailStopStore(disk, disk, func(err error) { t.Errorf("told %v", err) })
	if err := store.GetLog(7, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("got %v", err)
	}
	if err := store.Err(); err != nil {
		t.Errorf("the store failed: %v", err)
	}
}
