package raftguard_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

const cacheBytes = 1000

// readRemoved is a store whose entries cannot be read, so that what is read comes from memory.
type readRemoved struct{ raft.LogStore }

func (readRemoved) GetLog(uint64, *raft.Log) error { return raft.ErrLogNotFound }

func TestLogCacheIsBoundedInBytesAndEntries(t *testing.T) {
	tests := map[string]struct {
		size, count int
		first       uint64 // the first of the entries that are in memory
	}{
		"small entries fill the ring":      {size: 10, count: 20, first: 13},
		"large entries fill the bytes":     {size: 300, count: 20, first: 18},
		"one entry as large as the bound":  {size: cacheBytes, count: 20, first: 20},
		"entries larger than the bound":    {size: cacheBytes + 1, count: 20, first: 21},
		"fewer entries than the ring has":  {size: 10, count: 5, first: 1},
		"empty entries count as entries":   {size: 0, count: 20, first: 13},
		"exactly as many bytes as allowed": {size: cacheBytes / 8, count: 20, first: 13},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := raftguard.NewLogCache(readRemoved{raft.NewInmemStore()}, 8, cacheBytes)
			for i := range test.count {
				mustStore(t, cache.StoreLog(&raft.Log{Index: uint64(i + 1), Data: make([]byte, test.size)}))
				if held := cache.HeldBytes(); held > cacheBytes {
					t.Fatalf("%d bytes are held, want at most %d", held, cacheBytes)
				}
			}
			for i := uint64(1); i <= uint64(test.count)+1; i++ {
				var entry raft.Log
				err := cache.GetLog(i, &entry)
				if cached := i >= test.first && i <= uint64(test.count); (err == nil) != cached || cached && entry.Index != i {
					t.Errorf("entry %d: %v, index %d; want it in memory: %v", i, err, entry.Index, cached)
				}
			}
		})
	}
}

func TestLogCacheForgetsWhatIsReplaced(t *testing.T) {
	cache := raftguard.NewLogCache(raft.NewInmemStore(), 8, cacheBytes)
	store := func(term uint64, indices ...uint64) {
		t.Helper()
		for _, i := range indices {
			mustStore(t, cache.StoreLog(&raft.Log{Index: i, Term: term, Data: []byte("data")}))
		}
	}
	store(1, 1, 2, 3, 4)
	mustStore(t, cache.DeleteRange(3, 4))
	store(2, 3)
	for i, term := range map[uint64]uint64{1: 1, 2: 1, 3: 2} {
		var entry raft.Log
		if err := cache.GetLog(i, &entry); err != nil || entry.Term != term {
			t.Errorf("entry %d: term %d, %v; want term %d", i, entry.Term, err, term)
		}
	}
	if err := cache.GetLog(4, &raft.Log{}); err == nil {
		t.Error("a deleted entry is returned")
	}
	store(2, 10) // raft leaves a gap after it has installed a snapshot
	if held := cache.HeldBytes(); held != len("data") {
		t.Errorf("after a gap %d bytes are held, want those of one entry", held)
	}
}

// future is what raft's entries are a part of on a leader, with the answers of the commands.
type future struct {
	entry   raft.Log
	answers []byte
}

// TestLogCacheDoesNotKeepAnswers: raft stores a pointer to a part of the future, which keeps all of it in memory.
func TestLogCacheDoesNotKeepAnswers(t *testing.T) {
	cache := raftguard.NewLogCache(dropped{raft.NewInmemStore()}, 8, cacheBytes)
	answered := storeFuture(t, cache)
	runtime.GC()
	if f := answered.Value(); f != nil {
		t.Errorf("the %d bytes of answers to entry %d are still in memory", len(f.answers), f.entry.Index)
	}
	if err := cache.GetLog(1, &raft.Log{}); err != nil {
		t.Error(err)
	}
}

// dropped is a store that forgets what it is given.
type dropped struct{ raft.LogStore }

func (dropped) StoreLogs([]*raft.Log) error { return nil }

//go:noinline
func storeFuture(t *testing.T, logs raft.LogStore) weak.Pointer[future] {
	t.Helper()
	f := &future{entry: raft.Log{Index: 1, Data: []byte("command")}, answers: make([]byte, 1<<20)}
	mustStore(t, logs.StoreLogs([]*raft.Log{&f.entry}))
	return weak.Make(f)
}
