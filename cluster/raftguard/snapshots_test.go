package raftguard_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// snapshotFolder is a folder with two real snapshots, at index 5 and 9, both of term 1.
type snapshotFolder struct {
	base         string
	store        *raft.FileSnapshotStore
	older, newer string // folders
}

func newSnapshotFolder(t *testing.T) snapshotFolder {
	t.Helper()
	f := snapshotFolder{base: t.TempDir()}
	var err error
	f.store, err = raft.NewFileSnapshotStoreWithLogger(f.base, 3, hclog.NewNullLogger())
	mustStore(t, err)
	f.older, f.newer = f.addSnapshot(t, 5), f.addSnapshot(t, 9)
	return f
}

func (f snapshotFolder) addSnapshot(t *testing.T, index uint64) string {
	t.Helper()
	_, transport := raft.NewInmemTransport("a")
	sink, err := f.store.Create(1, index, 1, raft.Configuration{}, 1, transport)
	mustStore(t, err)
	_, err = io.WriteString(sink, "good state")
	mustStore(t, err)
	mustStore(t, sink.Close())
	return filepath.Join(f.base, "snapshots", sink.ID())
}

func (f snapshotFolder) verifyAll(logs raft.LogStore) error {
	return raftguard.VerifySnapshots(f.base, f.store, logs, checkState, hclog.NewNullLogger())
}

// checkState is the FSM's own check: the store's checksum does not know what a valid state is.
func checkState(state io.Reader) error {
	content, err := io.ReadAll(state)
	if err == nil && string(content) != "good state" {
		err = fmt.Errorf("the state says %q", content)
	}
	return err
}

// damages are ways to damage the newest snapshot.
var damages = map[string]func(folder string) error{
	"flipped bit in the state": func(folder string) error {
		return editFile(filepath.Join(folder, "state.bin"), "good", "goof")
	},
	"truncated state": func(folder string) error { return os.Truncate(filepath.Join(folder, "state.bin"), 4) },
	"missing state":   func(folder string) error { return os.Remove(filepath.Join(folder, "state.bin")) },
	"missing meta":    func(folder string) error { return os.Remove(filepath.Join(folder, "meta.json")) },
	"unreadable meta": func(folder string) error { return editFile(filepath.Join(folder, "meta.json"), "{", "") },
	"meta of another": func(folder string) error {
		return editFile(filepath.Join(folder, "meta.json"), `"Index":9`, `"Index":8`)
	},
}

// editFile replaces the first occurrence of old, which must be there, in the file.
func editFile(path, old, replacement string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(content), old) {
		return fmt.Errorf("%s does not contain %q", path, old)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(content), old, replacement, 1)), 0o600)
}

func TestIntactSnapshotsPass(t *testing.T) {
	f := newSnapshotFolder(t)
	mustStore(t, f.verifyAll(logOf(t, nil, 1)))
	if _, err := os.Stat(f.newer); err != nil {
		t.Error(err)
	}
}

func TestNoSnapshotsPass(t *testing.T) {
	mustStore(t, raftguard.VerifySnapshots(t.TempDir(), raft.NewInmemSnapshotStore(), logOf(t, nil, 1), checkState,
		hclog.NewNullLogger()))
}

func TestCorruptSnapshotIsSetAsideWhenTheLogReplacesIt(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			f := newSnapshotFolder(t)
			mustStore(t, damage(f.newer))
			mustStore(t, f.verifyAll(logOf(t, storedBytes(6, 12), 1)))
			if _, err := os.Stat(filepath.Join(f.base, "snapshots-corrupt", filepath.Base(f.newer))); err != nil {
				t.Errorf("the corrupt snapshot is gone for good: %v", err)
			}
			list, err := f.store.List()
			mustStore(t, err)
			if len(list) != 1 || list[0].Index != 5 {
				t.Errorf("raft would start from %v", list)
			}
			mustStore(t, f.verifyAll(logOf(t, storedBytes(6, 12), 1)))
		})
	}
}

func TestCorruptSnapshotIsAnErrorWhenNothingReplacesIt(t *testing.T) {
	logs := map[string]raft.LogStore{
		"empty log":              logOf(t, nil, 1),
		"log begins too late":    logOf(t, storedBytes(7, 12), 1),
		"log ends too early":     logOf(t, storedBytes(6, 8), 1),
		"hole in the log":        logOf(t, append(storedBytes(6, 7), storedBytes(9, 12)...), 1),
		"log of another history": logOf(t, storedBytes(6, 12), 2),
		"log with a corrupt entry": func() raft.LogStore {
			disk := raft.NewInmemStore()
			mustStore(t, raftguard.NewChecksum(disk).StoreLogs([]*raft.Log{
				{Index: 6, Term: 1},
				{Index: 8, Term: 1},
				{Index: 9, Term: 1},
			}))
			mustStore(t, disk.StoreLog(&raft.Log{Index: 7, Term: 1}))
			return raftguard.NewChecksum(disk)
		}(),
	}
	for name, log := range logs {
		t.Run(name, func(t *testing.T) {
			f := newSnapshotFolder(t)
			mustStore(t, damages["truncated state"](f.newer))
			err := f.verifyAll(log)
			var corrupt *raftguard.CorruptSnapshotError
			if !errors.As(err, &corrupt) || corrupt.Path != f.newer || corrupt.Gap == "" {
				t.Errorf("got %v, want a *CorruptSnapshotError for %s", err, f.newer)
			}
			if _, err := os.Stat(f.newer); err != nil {
				t.Errorf("the evidence was touched: %v", err)
			}
		})
	}
}

func TestCorruptSnapshotsAreReplacedByALogFromItsBeginning(t *testing.T) {
	f := newSnapshotFolder(t)
	mustStore(t, damages["truncated state"](f.newer))
	mustStore(t, damages["missing meta"](f.older))
	mustStore(t, f.verifyAll(logOf(t, storedBytes(1, 12), 1)))
	if list, err := f.store.List(); err != nil || len(list) != 0 {
		t.Errorf("raft would start from %v, %v", list, err)
	}
}

func TestSnapshotThatTheFSMRefusesIsCorrupt(t *testing.T) {
	f := newSnapshotFolder(t)
	refuse := func(io.Reader) error { return errors.New("its digest does not match") }
	err := raftguard.VerifySnapshots(f.base, f.store, logOf(t, nil, 1), refuse, hclog.NewNullLogger())
	var corrupt *raftguard.CorruptSnapshotError
	if !errors.As(err, &corrupt) {
		t.Errorf("got %v", err)
	}
}

func TestSweepRemovesOnlyUnfinishedSnapshots(t *testing.T) {
	f := newSnapshotFolder(t)
	unfinished := fmt.Sprintf("1-10-%d.tmp", time.Now().UnixMilli())
	mustStore(t, os.MkdirAll(filepath.Join(f.base, "snapshots", unfinished), 0o755))
	mustStore(t, os.WriteFile(filepath.Join(f.base, "snapshots", unfinished, "state.bin"), []byte("half"), 0o600))
	mustStore(t, os.WriteFile(filepath.Join(f.base, "snapshots", "note.tmp"),
		[]byte("a file of another program"), 0o600))
	swept, err := raftguard.SweepSnapshots(f.base)
	if err != nil || len(swept) != 1 || swept[0] != unfinished {
		t.Errorf("swept %v, %v", swept, err)
	}
	if list, err := f.store.List(); err != nil || len(list) != 2 {
		t.Errorf("%d snapshots left, %v", len(list), err)
	}
	if swept, err := raftguard.SweepSnapshots(t.TempDir()); err != nil || len(swept) != 0 {
		t.Errorf("in an empty folder: swept %v, %v", swept, err)
	}
}

func TestPrepareLeavesAFolderThatRaftCanStartOn(t *testing.T) {
	f := newSnapshotFolder(t)
	mustStore(t, os.MkdirAll(filepath.Join(f.base, "snapshots", "1-10-1.tmp"), 0o755))
	log := logOf(t, storedBytes(6, 9), 1)
	mustStore(t, log.StoreLog(&raft.Log{Index: 10, Term: 2}))
	mustStore(t, damages["truncated state"](f.newer)) // the log replaces it
	for range 2 {
		mustStore(t, raftguard.Prepare(f.base, f.store, log, checkState, hclog.NewNullLogger()))
		if n := countEntries(log); n != 5 {
			t.Errorf("%d entries left, want all 5", n)
		}
	}
}

func TestPrepareDropsATailThatContradictsTheSnapshot(t *testing.T) {
	f := newSnapshotFolder(t)
	log := logOf(t, storedBytes(6, 12), 9) // of another term than the snapshot at 9
	mustStore(t, raftguard.Prepare(f.base, f.store, log, checkState, hclog.NewNullLogger()))
	if n := countEntries(log); n != 0 {
		t.Errorf("%d entries left, want none", n)
	}
}

func TestPrepareRefusesAHole(t *testing.T) {
	f := newSnapshotFolder(t)
	err := raftguard.Prepare(f.base, f.store, logOf(t, storedBytes(11, 12), 1), checkState, hclog.NewNullLogger())
	var hole *raftguard.HoleError
	if !errors.As(err, &hole) || hole.Missing != 10 {
		t.Errorf("got %v, want the hole at 10", err)
	}
}
