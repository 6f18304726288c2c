package raftguard_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

func TestChecksumIsInvisible(t *testing.T) {
	entries := map[string]raft.Log{
		"command":         {Index: 1, Term: 2, Type: raft.LogCommand, Data: []byte("x"), AppendedAt: time.Unix(1, 0)},
		"nil data":        {Index: 1, Term: 2, Type: raft.LogNoop},
		"empty data":      {Index: 1, Term: 2, Type: raft.LogBarrier, Data: []byte{}},
		"extensions":      {Index: 1, Term: 2, Data: []byte("x"), Extensions: []byte("of another layer")},
		"configuration":   {Index: 1, Term: 1, Type: raft.LogConfiguration, Data: bytes.Repeat([]byte("c"), 5000)},
		"only extensions": {Index: 1, Term: 2, Extensions: []byte{0}},
	}
	for name, want := range entries {
		t.Run(name, func(t *testing.T) {
			log := raftguard.NewChecksum(raft.NewInmemStore())
			stored := want
			if err := log.StoreLog(&stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, stored); diff != "" {
				t.Errorf("storing changed the caller's entry: %s", diff)
			}
			for range 2 { // reading must not change what is stored
				var got raft.Log
				if err := log.GetLog(1, &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestChecksumFindsEveryChange(t *testing.T) {
	changes := map[string]func(*raft.Log){
		"index":         func(e *raft.Log) { e.Index++ },
		"term":          func(e *raft.Log) { e.Term++ },
		"type":          func(e *raft.Log) { e.Type = raft.LogNoop },
		"data":          func(e *raft.Log) { e.Data[3] ^= 1 },
		"shorter data":  func(e *raft.Log) { e.Data = e.Data[:4] },
		"no data":       func(e *raft.Log) { e.Data = nil },
		"extensions":    func(e *raft.Log) { e.Extensions[len(e.Extensions)-1] ^= 1 },
		"the sum":       func(e *raft.Log) { e.Extensions[5] ^= 1 },
		"the mark":      func(e *raft.Log) { e.Extensions[0] ^= 1 },
		"no extensions": func(e *raft.Log) { e.Extensions = nil },
		"a byte moves over": func(e *raft.Log) {
			e.Data = append(e.Data, e.Extensions[8])
			e.Extensions = e.Extensions[:8]
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			disk := raft.NewInmemStore()
			log := raftguard.NewChecksum(disk)
			mustStore(t, log.StoreLog(&raft.Log{Index: 7, Term: 3, Data: []byte("content"), Extensions: []byte("e")}))
			var stored raft.Log
			mustStore(t, disk.GetLog(7, &stored))
			stored.Data, stored.Extensions = bytes.Clone(stored.Data), bytes.Clone(stored.Extensions)
			change(&stored)
			replaced := replacedEntry{LogStore: disk, entry: stored}
			err := raftguard.NewChecksum(replaced).GetLog(7, &raft.Log{})
			var corrupt *raftguard.CorruptEntryError
			if !errors.As(err, &corrupt) || corrupt.Index != 7 {
				t.Errorf("got %v, want a *CorruptEntryError for entry 7", err)
			}
		})
	}
}

type replacedEntry struct {
	raft.LogStore
	entry raft.Log
}

func (r replacedEntry) GetLog(_ uint64, entry *raft.Log) error {
	*entry = r.entry
	return nil
}

func mustStore(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestChecksummedClusterReplicates runs leader and followers on checksummed stores, below a cache as in the real node:
// what a leader reads back for a late follower, and what a follower stores, must both verify.
func TestChecksummedClusterReplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, func(c *cluster) {
			c.wrap = func(n *node) (raft.LogStore, raft.SnapshotStore) {
				cache, err := raft.NewLogCache(4, raftguard.NewChecksum(n.disk))
				c.mustSucceed(err)
				return cache, n.disk.Snapshots
			}
		})
		defer c.close()
		c.net.Isolate("c")
		for range 20 { // more than the cache keeps
			c.mustWrite(c.a, "x")
		}
		c.net.Heal()
		c.mustWrite(c.a, "last")
		c.eventually("c holds the last write, as all do", func() bool {
			return c.c.fsm.hasCommand("last") &&
				!c.hasDiverged()
		})
		for _, n := range c.allNodes() {
			if err := raftguard.VerifyLog(raftguard.NewChecksum(n.disk), 0); err != nil {
				t.Errorf("%s: %v", n.id, err)
			}
		}
	})
}

func TestVerifyLog(t *testing.T) {
	tests := map[string]struct {
		present  []uint64
		snapshot uint64
		missing  uint64
	}{
		"empty":                              {},
		"empty above a snapshot":             {snapshot: 9},
		"from the beginning":                 {present: storedBytes(1, 9)},
		"joins its snapshot":                 {present: storedBytes(6, 9), snapshot: 5},
		"overlaps its snapshot":              {present: storedBytes(2, 9), snapshot: 5},
		"ends before its snapshot":           {present: storedBytes(2, 4), snapshot: 9},
		"hole that a snapshot covers":        {present: append(storedBytes(1, 3), storedBytes(8, 9)...), snapshot: 7},
		"burnt index of a restored backup":   {present: append(storedBytes(1, 3), storedBytes(5, 9)...), snapshot: 4},
		"begins without a snapshot":          {present: storedBytes(3, 9), missing: 1},
		"begins too late after its snapshot": {present: storedBytes(8, 9), snapshot: 5, missing: 6},
		"hole above its snapshot": {
			present: append(storedBytes(1, 6), storedBytes(8, 9)...), snapshot: 5,
			missing: 7,
		},
		"hole that begins below and ends above it": {
			present: append(storedBytes(1, 3), storedBytes(8, 9)...), snapshot: 5,
			missing: 6,
		},
		"last index that is far off": {present: append(storedBytes(1, 3), 1<<60), missing: 4},
		"hole without a snapshot":    {present: append(storedBytes(1, 3), storedBytes(5, 9)...), missing: 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := logOf(t, test.present, 1)
			err := raftguard.VerifyLog(log, test.snapshot)
			var hole *raftguard.HoleError
			if test.missing == 0 && err != nil {
				t.Errorf("got %v", err)
			}
			if test.missing != 0 && (!errors.As(err, &hole) || hole.Missing != test.missing) {
				t.Errorf("got %v, want a *HoleError for entry %d", err, test.missing)
			}
		})
	}
}

func TestVerifyLogNamesTheCorruptEntry(t *testing.T) {
	disk := raft.NewInmemStore()
	mustStore(t, raftguard.NewChecksum(disk).StoreLogs([]*raft.Log{{Index: 1, Term: 1}, {Index: 2, Term: 1}}))
	mustStore(t, disk.StoreLog(&raft.Log{Index: 2, Term: 1})) // without a sum
	err := raftguard.VerifyLog(raftguard.NewChecksum(disk), 0)
	var corrupt *raftguard.CorruptEntryError
	if !errors.As(err, &corrupt) || corrupt.Index != 2 {
		t.Errorf("got %v, want a *CorruptEntryError for entry 2", err)
	}
}

func storedBytes(first, last uint64) []uint64 {
	var indexes []uint64
	for i := first; i <= last; i++ {
		indexes = append(indexes, i)
	}
	return indexes
}

func logOf(t *testing.T, indexes []uint64, term uint64) *raftguard.Checksum {
	t.Helper()
	log := raftguard.NewChecksum(raft.NewInmemStore())
	for _, index := range indexes {
		mustStore(t, log.StoreLog(&raft.Log{Index: index, Term: term}))
	}
	return log
}
