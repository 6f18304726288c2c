package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/internal/verify"
)

var tester = identity{ID: "n1", Cluster: "blue"}

// fillFolder writes log entries first to last, all of term 3, and snapshots into a folder.
func fillFolder(t *testing.T, path string, first, last uint64, snapshots ...uint64) {
	t.Helper()
	fillFolderOf(t, path, "", first, last, snapshots...)
}

func fillFolderOf(t *testing.T, path, logStore string, first, last uint64, snapshots ...uint64) {
	t.Helper()
	f, err := openFolder(path, tester, logStore, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, f)
	if f.self.Lost != "" {
		t.Fatalf("a new folder has lost %s", f.self.Lost)
	}
	if err := f.store.SetUint64([]byte("CurrentTerm"), 3); err != nil {
		t.Fatal(err)
	}
	recorded, err := raftguard.NewRecordedSnapshots(f.snapshots, f.store)
	if err != nil {
		t.Fatal(err)
	}
	for i := first; i <= last; i++ {
		if err := raftguard.NewChecksum(f.logs).StoreLog(
			&raft.Log{Index: i, Term: 3, Type: raft.LogNoop}); err != nil {
			t.Fatal(err)
		}
	}
	for _, index := range snapshots {
		writeSnapshot(t, recorded, index)
	}
}

func writeSnapshot(t *testing.T, store raft.SnapshotStore, index uint64) {
	t.Helper()
	_, transport := raft.NewInmemTransport("")
	sink, err := store.Create(1, index, 3, raft.Configuration{}, 1, transport)
	if err != nil {
		t.Fatal(err)
	}
	state, err := fsm.New(fsm.Options{}).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(state.Persist(sink), sink.Close()); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, path string) *dataFolder {
	t.Helper()
	f, err := openFolder(path, tester, "", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustClose(t *testing.T, f *dataFolder) {
	t.Helper()
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
}

// openOutcome returns the outcome of opening a folder: "whole", "new", "lost", or an error.
func openOutcome(t *testing.T, path string) string {
	t.Helper()
	f, err := openFolder(path, tester, "", hclog.NewNullLogger())
	if err != nil {
		return "refused: " + err.Error()
	}
	defer mustClose(t, f)
	history, err := raftguard.CheckHistory(raftguard.NewChecksum(f.logs), f.store, f.snapshots)
	switch {
	case err != nil:
		t.Fatal(err)
	case f.self.Lost != "":
		if !history.Empty && !history.TermOnly {
			t.Errorf("raft would start on the rest of a lost state: %+v", history)
		}
		return "lost: " + f.self.Lost
	case history.Empty:
		return "new"
	case history.Lost != "":
		t.Fatalf("a folder that was opened has lost %s", history.Lost)
	}
	return "whole"
}

var folderParts = []string{identityFile, storeFile, snapshotsFolder, corruptFolder}

// TestEverySubsetOfADataFolder removes every subset of the parts of a data folder. Without raft.db the log is lost, and
// the node must report it whatever else is left; only a folder without any part is new.
func TestEverySubsetOfADataFolder(t *testing.T) {
	kinds := []struct {
		name             string
		first, last      uint64
		snapshots        []uint64
		withoutSnapshots string // what a folder is that has only lost its snapshots
	}{
		{name: "a log from the beginning", first: 1, last: 9, withoutSnapshots: "whole"},
		{
			name: "a log from the beginning and snapshots", first: 1, last: 9, snapshots: []uint64{5, 7},
			withoutSnapshots: "whole",
		},
		{
			name: "a short log behind snapshots", first: 6, last: 9, snapshots: []uint64{5, 7},
			withoutSnapshots: "lost: entry 5 and what came before it is gone",
		},
		{
			name: "a snapshot from the leader and no log", first: 1, last: 0, snapshots: []uint64{7},
			withoutSnapshots: "lost: it has taken part in term 3",
		},
	}
	for _, kind := range kinds {
		for _, log := range []string{"an earlier version", cluster.LogStoreBolt, cluster.LogStoreWAL} {
			earlier, parts, logStore := log == "an earlier version", folderParts, log
			if earlier {
				logStore = cluster.LogStoreBolt
			}
			if log == cluster.LogStoreWAL {
				parts = append(slices.Clone(parts), walFolder)
			}
			for gone := range 1 << len(parts) {
				var names []string
				for i, name := range parts {
					if gone&(1<<i) != 0 {
						names = append(names, name)
					}
				}
				t.Run(fmt.Sprintf("%s, %s, without %v", kind.name, log, names), func(t *testing.T) {
					if log != cluster.LogStoreBolt && len(names) > 1 && len(names) < len(parts) {
						verify.Only(t)
					}
					t.Parallel()
					path := t.TempDir()
					fillFolderOf(t, path, logStore, kind.first, kind.last, kind.snapshots...)
					if err := os.Mkdir(filepath.Join(path, corruptFolder), 0o700); err != nil {
						t.Fatal(err)
					}
					if earlier {
						forgetMarks(t, path)
					}
					for _, name := range names {
						if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
							t.Fatal(err)
						}
					}
					want := wantedOutcome(gone, len(names) == len(parts), kind.withoutSnapshots)
					for start := range 3 {
						if got := openOutcome(t, path); !strings.HasPrefix(got, want) {
							t.Errorf("start %d: got %q, want %q", start+1, got, want)
						}
					}
				})
			}
		}
	}
}

// wantedOutcome is the specification: it depends only on what is missing.
func wantedOutcome(gone int, all bool, withoutSnapshots string) string {
	noIdentity, noStore, noSnapshots, noSegments := gone&1 != 0, gone&2 != 0, gone&4 != 0, gone&16 != 0
	switch {
	case all:
		return "new"
	case noStore:
		return "lost: raft.db with its log, term and vote is gone"
	case noSegments:
		return "lost: wal with its log is gone"
	case noIdentity:
		return "refused: data folder"
	case noSnapshots:
		return withoutSnapshots
	}
	return "whole"
}

// forgetMarks turns a folder into one written by a version before 0.6.
func forgetMarks(t *testing.T, path string) {
	t.Helper()
	f := mustOpen(t, path)
	defer mustClose(t, f)
	if err := errors.Join(f.store.Set(storeKey, nil), f.store.Set(epochKey, nil),
		os.RemoveAll(filepath.Join(path, walFolder, "epoch")),
		f.store.SetUint64([]byte("quorate-snapshot-index"), 0)); err != nil {
		t.Fatal(err)
	}
	writeIdentity(t, filepath.Join(path, identityFile), `{"id":"n1","cluster":"blue","format":1}`)
}

func TestAStoreOfAnotherFolderIsNotUsed(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	fillFolder(t, path, 1, 9)
	fillFolder(t, other, 1, 9)
	if err := os.Rename(filepath.Join(other, storeFile), filepath.Join(path, storeFile)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := openOutcome(t, path); !strings.HasPrefix(got, "lost: raft.db does not belong") {
			t.Errorf("got %q", got)
		}
	}
	if _, err := os.Stat(filepath.Join(path, "set-aside-1", storeFile)); err != nil {
		t.Errorf("what was left is gone: %v", err)
	}
}

func TestWhatANodeHoldsMustFitTogether(t *testing.T) {
	set := func(key string, value uint64) func(*testing.T, *dataFolder) {
		return func(t *testing.T, f *dataFolder) {
			t.Helper()
			if err := f.store.SetUint64([]byte(key), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		name   string
		change func(*testing.T, *dataFolder)
		want   string
	}{
		{"nothing", func(*testing.T, *dataFolder) {}, "whole"},
		{"the term is gone", set("CurrentTerm", 0), "lost: its term is gone"},
		{"the term is older than the log", set("CurrentTerm", 2), "lost: its term is gone"},
		{"the vote is newer than the term", set("LastVoteTerm", 4), "lost: its term is gone"},
		{"the log is gone and an older snapshot is left", func(t *testing.T, f *dataFolder) {
			t.Helper()
			newest, err := f.snapshots.List()
			if err != nil || len(newest) != 2 {
				t.Fatalf("%v, %v", newest, err)
			}
			err = errors.Join(f.logs.DeleteRange(1, 9),
				os.RemoveAll(filepath.Join(f.path, snapshotsFolder, newest[0].ID)))
			if err != nil {
				t.Fatal(err)
			}
		}, "lost: its newest snapshot is gone: it reached to entry 7, and what is left reaches to entry 5"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir()
			fillFolder(t, path, 1, 9, 5, 7)
			f := mustOpen(t, path)
			c.change(t, f)
			mustClose(t, f)
			if got := openOutcome(t, path); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestALossIsRememberedUntilTheNodeWasTakenInAgain: a folder with an empty store does not count as new until it has
// state again.
func TestALossIsRememberedUntilTheNodeWasTakenInAgain(t *testing.T) {
	path := t.TempDir()
	fillFolder(t, path, 1, 9)
	if err := os.Remove(filepath.Join(path, storeFile)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := openOutcome(t, path); !strings.HasPrefix(got, "lost") {
			t.Fatalf("got %q", got)
		}
	}
	f := mustOpen(t, path)
	err := errors.Join(f.store.SetUint64([]byte("CurrentTerm"), 5),
		raftguard.NewChecksum(f.logs).StoreLog(&raft.Log{Index: 1, Term: 5, Type: raft.LogNoop}))
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, f)
	for range 2 {
		if got := openOutcome(t, path); got != "whole" {
			t.Fatalf("got %q", got)
		}
	}
	if err := os.Remove(filepath.Join(path, storeFile)); err != nil {
		t.Fatal(err)
	}
	if got := openOutcome(t, path); !strings.HasPrefix(got, "lost") {
		t.Fatalf("got %q", got)
	}
}

// TestACrashWhileALossIsNoted stops between the steps of recording a loss: identity.json is written, nothing was moved
// yet.
func TestACrashWhileALossIsNoted(t *testing.T) {
	path := t.TempDir()
	fillFolder(t, path, 1, 9, 5)
	noted := tester
	noted.Lost = "another disk"
	if err := noted.writeFile(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := openOutcome(t, path); got != "lost: another disk" {
			t.Errorf("got %q", got)
		}
	}
}

func TestWhatIsSetAsideIsBounded(t *testing.T) {
	path := t.TempDir()
	for i := range maxSetAside {
		if err := os.Mkdir(filepath.Join(path, fmt.Sprint(setAsideFolder, i+1)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(path, snapshotsFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := openOutcome(t, path); !strings.Contains(got, "has lost data 9 times") {
		t.Errorf("got %q", got)
	}
}

func TestAFolderHasOneServer(t *testing.T) {
	path := t.TempDir()
	f := mustOpen(t, path)
	defer mustClose(t, f)
	if err := os.Remove(filepath.Join(path, storeFile)); err != nil { // its lock goes with it
		t.Fatal(err)
	}
	if got := openOutcome(t, path); !strings.Contains(got, "is in use by another server") {
		t.Errorf("got %q", got)
	}
}

// failingSnapshots is a snapshot store whose sinks cannot be completed and return nil when they are closed again, like
// raft's.
type failingSnapshots struct{ raft.SnapshotStore }

type failingSink struct {
	raft.SnapshotSink
	closed bool
}

func (f failingSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64,
	t raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := f.SnapshotStore.Create(v, index, term, c, ci, t)
	return &failingSink{SnapshotSink: sink}, err
}

func (s *failingSink) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.Cancel(), io.ErrShortWrite)
}

func TestASnapshotThatFailedIsNotRecorded(t *testing.T) {
	path := t.TempDir()
	fillFolder(t, path, 1, 9, 5)
	f := mustOpen(t, path)
	recorded, err := raftguard.NewRecordedSnapshots(failingSnapshots{f.snapshots}, f.store)
	if err != nil {
		t.Fatal(err)
	}
	_, transport := raft.NewInmemTransport("")
	sink, err := recorded.Create(1, 12, 3, raft.Configuration{}, 1, transport)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err == nil {
		t.Error("a snapshot was complete that failed")
	}
	if err := sink.Close(); err != nil {
		t.Error(err)
	}
	mustClose(t, f)
	if got := openOutcome(t, path); got != "whole" {
		t.Errorf("got %q", got)
	}
}
