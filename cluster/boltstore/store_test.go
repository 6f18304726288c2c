package boltstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/raftguard"
)

const quickly = 50 * time.Millisecond // to wait for a lock

type content struct {
	First, Last uint64
	Entries     []entry
	Term        uint64
	Candidate   string
}

// entry has its data as a string so that thousands compare quickly.
type entry struct {
	Index, Term uint64
	Type        raft.LogType
	Data        string
}

// sampleFile writes a file with small and large entries (so that there are branch and overflow pages), removed entries
// (so that there are free pages) and a vote, and returns its bytes and its content.
func sampleFile(t *testing.T) ([]byte, content) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raft.db")
	store := mustOpen(t, path)
	log := raftguard.NewChecksum(store)
	for batch := range 10 {
		var entries []*raft.Log
		for i := range 20 {
			index := uint64(1 + batch*20 + i)
			size := 100 + 37*i
			if i == 7 {
				size = 9000
			}
			entries = append(entries, &raft.Log{
				Index: index, Term: 1 + index/50, Type: raft.LogCommand,
				Data: bytes.Repeat([]byte{byte(index)}, size), AppendedAt: time.Unix(int64(index), 0),
			})
		}
		mustSucceed(t, log.StoreLogs(entries))
	}
	mustSucceed(t, log.DeleteRange(1, 50))
	mustSucceed(t, store.SetUint64([]byte("CurrentTerm"), 5))
	mustSucceed(t, store.SetUint64([]byte("LastVoteTerm"), 5))
	mustSucceed(t, store.Set([]byte("LastVoteCand"), []byte("10.0.0.1:7000")))
	all, err := readContent(store)
	mustSucceed(t, err)
	mustSucceed(t, store.Close())
	raw, err := os.ReadFile(path)
	mustSucceed(t, err)
	return raw, all
}

// readContent returns everything that raft would find, or the error that would keep the server from starting.
func readContent(store *boltstore.Store) (c content, err error) {
	log := raftguard.NewChecksum(store)
	if c.First, err = log.FirstIndex(); err != nil {
		return c, err
	}
	if c.Last, err = log.LastIndex(); err != nil {
		return c, err
	}
	if err := raftguard.VerifyLog(log, 50); err != nil {
		return c, err
	}
	for index := c.First; index <= c.Last; index++ {
		var e raft.Log
		if err := log.GetLog(index, &e); err != nil {
			return c, err
		}
		c.Entries = append(c.Entries, entry{e.Index, e.Term, e.Type, string(e.Data)})
	}
	if c.Term, err = store.GetUint64([]byte("CurrentTerm")); err != nil {
		return c, err
	}
	candidate, err := store.Get([]byte("LastVoteCand"))
	c.Candidate = string(candidate)
	return c, err
}

func mustOpen(t *testing.T, path string) *boltstore.Store {
	t.Helper()
	store, err := boltstore.Open(path, quickly)
	mustSucceed(t, err)
	return store
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openBytes opens a file with these bytes, reads all of it, and checks that raft could continue writing to it.
func openBytes(t *testing.T, raw []byte) (content, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raft.db")
	mustSucceed(t, os.WriteFile(path, raw, 0o600))
	store, err := boltstore.Open(path, quickly)
	if err != nil {
		return content{}, err
	}
	defer func() { mustSucceed(t, store.Close()) }()
	all, err := readContent(store)
	if err == nil {
		mustSucceed(t, store.StoreLog(&raft.Log{Index: all.Last + 1, Data: make([]byte, 5000)}))
		mustSucceed(t, store.DeleteRange(all.First, all.Last))
	}
	return all, err
}

func wantCorrupt(t *testing.T, err error) {
	t.Helper()
	var corrupt *boltstore.CorruptError
	if !errors.As(err, &corrupt) {
		t.Errorf("got error %v, want a *CorruptError", err)
		return
	}
	if corrupt.Path == "" || corrupt.Reason == "" {
		t.Errorf("the error does not say what is wrong where: %+v", corrupt)
	}
}

func TestStoreKeepsLogAndVotes(t *testing.T) {
	raw, want := sampleFile(t)
	got, err := openBytes(t, raw)
	mustSucceed(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.First != 51 || got.Last != 200 || got.Term != 5 || got.Candidate != "10.0.0.1:7000" {
		t.Errorf("first %d, last %d, term %d, candidate %q", got.First, got.Last, got.Term, got.Candidate)
	}
}

func TestMissingKeysAreTheErrorThatRaftKnows(t *testing.T) {
	store := mustOpen(t, filepath.Join(t.TempDir(), "raft.db"))
	defer func() { mustSucceed(t, store.Close()) }()
	if _, err := store.GetUint64([]byte("CurrentTerm")); !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		t.Errorf("GetUint64: %v", err)
	}
	if _, err := store.Get([]byte("LastVoteCand")); !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		t.Errorf("Get: %v", err)
	}
	if exists, err := raft.HasExistingState(store, store, raft.NewInmemSnapshotStore()); err != nil || exists {
		t.Errorf("a new store has state: %v, %v", exists, err)
	}
}

func TestSecondOpenerIsToldThatTheFolderIsInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	store := mustOpen(t, path)
	_, err := boltstore.Open(path, quickly)
	var inUse *boltstore.InUseError
	if !errors.As(err, &inUse) || inUse.Path != path {
		t.Errorf("got error %v, want an *InUseError for %s", err, path)
	}
	mustSucceed(t, store.Close())
	mustSucceed(t, mustOpen(t, path).Close())
}

func TestCrashDuringCreationLeavesNothingBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	mustSucceed(t, os.WriteFile(path+".new", []byte("half a file"), 0o600))
	mustSucceed(t, mustOpen(t, path).Close())
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

func TestFolderThatDoesNotExistIsNotCalledDamaged(t *testing.T) {
	_, err := boltstore.Open(filepath.Join(t.TempDir(), "missing", "raft.db"), quickly)
	var corrupt *boltstore.CorruptError
	if err == nil || errors.As(err, &corrupt) {
		t.Errorf("got error %v, want a plain one", err)
	}
}

func TestTruncatedFileIsRefused(t *testing.T) {
	raw, want := sampleFile(t)
	sizes := []int{0, 1, 100, 1023, 1024, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 16384, 20000, 32768, 65536}
	for size := 70_000; size < len(raw); size += 33_333 {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			got, err := openBytes(t, raw[:size])
			if err == nil && size > len(raw)/2 && cmp.Equal(want, got) {
				return // bbolt makes files larger than what is in use
			}
			wantCorrupt(t, err)
		})
	}
}

func TestGarbageIsRefused(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{10, 4096, 8192, 100_000} {
		raw := make([]byte, size)
		_, err := random.Read(raw)
		mustSucceed(t, err)
		_, err = openBytes(t, raw)
		wantCorrupt(t, err)
	}
}

func TestZeroedTailIsRefused(t *testing.T) {
	raw, _ := sampleFile(t)
	for _, from := range []int{4096, 8192, 16384, len(raw) / 2} {
		damaged := bytes.Clone(raw)
		clear(damaged[from:])
		_, err := openBytes(t, damaged)
		wantCorrupt(t, err)
	}
}

func TestDamagedMetaPageIsRefusedRatherThanStartingInThePast(t *testing.T) {
	raw, _ := sampleFile(t)
	for _, page := range []int{0, 4096} {
		damaged := bytes.Clone(raw)
		damaged[page+16+48] ^= 1 // the transaction id
		_, err := openBytes(t, damaged)
		wantCorrupt(t, err)
	}
}

// TestAnyFlippedBitIsFoundOrHarmless checks the promise as a whole: whichever bit flips, the server either refuses to
// start or finds exactly what was written. It must never crash, hang, or read something else.
func TestAnyFlippedBitIsFoundOrHarmless(t *testing.T) {
	raw, want := sampleFile(t)
	random := rand.New(rand.NewPCG(1, 2))
	refused, harmless := 0, 0
	flip := func(offset int) {
		damaged := bytes.Clone(raw)
		damaged[offset] ^= 1 << random.IntN(8)
		got, err := openBytes(t, damaged)
		if err != nil {
			refused++
			return
		}
		harmless++
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a flipped bit at %d changed what is read: %s", offset, diff)
		}
	}
	for range 40 {
		flip(random.IntN(len(raw)))
	}
	for range 40 { // in the heads of pages, where the structure is
		flip(random.IntN(len(raw)/4096)*4096 + random.IntN(64))
	}
	t.Logf("%d refused, %d harmless", refused, harmless)
	if refused == 0 || harmless == 0 {
		t.Errorf("%d refused and %d harmless: the sample shows nothing", refused, harmless)
	}
}

func TestFlippedBitInAnEntryNamesTheEntry(t *testing.T) {
	raw, _ := sampleFile(t)
	data := bytes.Repeat([]byte{150}, 100) // entry 150 is filled with its index
	changed := append(bytes.Repeat([]byte{150}, 99), 151)
	damaged := bytes.ReplaceAll(raw, data, changed) // in every copy, for freed pages are still in the file
	_, err := openBytes(t, damaged)
	var corrupt *raftguard.CorruptEntryError
	if !errors.As(err, &corrupt) || corrupt.Index != 150 {
		t.Errorf("got error %v, want a *CorruptEntryError for entry 150", err)
	}
}

func TestChangedVoteIsRefused(t *testing.T) {
	raw, _ := sampleFile(t)
	damaged := bytes.ReplaceAll(raw, []byte("10.0.0.1:7000"), []byte("10.0.0.2:7000"))
	_, err := openBytes(t, damaged)
	wantCorrupt(t, err)
	damaged = bytes.ReplaceAll(raw, []byte("CurrentTerm"), []byte("CurrentTesm"))
	_, err = openBytes(t, damaged)
	wantCorrupt(t, err)
}

func TestRenamedBucketIsRefused(t *testing.T) {
	raw, _ := sampleFile(t)
	_, err := openBytes(t, bytes.ReplaceAll(raw, []byte("conf"), []byte("conn")))
	wantCorrupt(t, err)
}
