package raftguard_test

import (
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// TestLogSizeKnowsEveryEntry compares sums of sizes with those of the entries that are in the log, while entries are
// appended and removed at both ends, after a gap, and by a new LogSize that has only read the log.
func TestLogSizeKnowsEveryEntry(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	inner := raft.NewInmemStore()
	logs := raftguard.NewLogSize(inner)
	next := uint64(1)
	for range 3000 {
		first, err1 := logs.FirstIndex()
		last, err2 := logs.LastIndex()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var err error
		switch kind := random.IntN(20); {
		case kind == 0 && last > first+4:
			err = logs.DeleteRange(first, first+random.Uint64N(last-first))
		case kind == 1 && last > first+4:
			next = last - random.Uint64N(3)
			err = logs.DeleteRange(next, last)
		case kind == 2 && random.IntN(10) == 0 && last > 0:
			next += 100
			err = logs.DeleteRange(first, last)
		case kind == 3:
			logs = raftguard.NewLogSize(inner)
			if last > 0 {
				err = logs.GetLog(last, &raft.Log{})
			}
			for i := first; i <= last && last > 0 && err == nil; i++ {
				err = logs.GetLog(i, &raft.Log{})
			}
		default:
			err = logs.StoreLog(&raft.Log{Index: next, Data: make([]byte, random.IntN(5)*random.IntN(900))})
			next++
		}
		if err != nil {
			t.Fatal(err)
		}
		compareSizes(t, logs, inner, random)
	}
}

// deletingStore deletes the beginning of a log while an entry of it is read.
type deletingStore struct {
	*raft.InmemStore
	during func()
}

func (s deletingStore) GetLog(index uint64, entry *raft.Log) error {
	err := s.InmemStore.GetLog(index, entry)
	s.during()
	return err
}

// TestLogSizeAfterAReadOfADeletedEntry: such a read does not make it forget the others.
func TestLogSizeAfterAReadOfADeletedEntry(t *testing.T) {
	inner := deletingStore{InmemStore: raft.NewInmemStore(), during: func() {}}
	logs := raftguard.NewLogSize(&inner)
	for index := uint64(1); index <= 10; index++ {
		if err := logs.StoreLog(&raft.Log{Index: index, Data: make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
	}
	inner.during = func() {
		if err := logs.DeleteRange(1, 5); err != nil {
			t.Error(err)
		}
	}
	if err := logs.GetLog(3, &raft.Log{}); err != nil {
		t.Fatal(err)
	}
	if got := logs.BytesBetween(5, 10); got != 500 {
		t.Errorf("the five entries of 100 bytes that are left have %d bytes", got)
	}
}

func compareSizes(t *testing.T, logs *raftguard.LogSize, inner *raft.InmemStore, random *rand.Rand) {
	t.Helper()
	first, _ := inner.FirstIndex()
	last, _ := inner.LastIndex()
	after, through := first+random.Uint64N(last-first+2), first+random.Uint64N(last-first+2)
	bound := random.Uint64N(20_000)
	var between, trailing, entries uint64
	for i := last; i >= first && i > 0; i-- {
		var entry raft.Log
		if err := inner.GetLog(i, &entry); err != nil {
			t.Fatal(err)
		}
		size := uint64(len(entry.Data))
		if i > after && i <= through {
			between += size
		}
		if trailing += size; trailing <= bound {
			entries++
		}
	}
	if got := logs.BytesBetween(after, through); got != between {
		t.Fatalf("log %d to %d: %d bytes above %d up to %d, want %d", first, last, got, after, through, between)
	}
	if got := logs.EntriesWithin(bound); got != entries {
		t.Fatalf("log %d to %d: %d entries within %d bytes, want %d", first, last, got, bound, entries)
	}
}
