package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/raftguard"
)

var errCrash = errors.New("the process was killed")

// logFolder makes a data folder with a log of a kind: entries 1 to last, without those up to compacted.
func logFolder(t *testing.T, kind string, compacted, last uint64) string {
	t.Helper()
	path := t.TempDir()
	f, err := openFolder(path, tester, kind, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, f)
	if err := f.store.SetUint64([]byte("CurrentTerm"), 3); err != nil {
		t.Fatal(err)
	}
	logs := raftguard.NewChecksum(f.logs)
	var entries []*raft.Log
	for i := uint64(1); i <= last; i++ {
		entries = append(entries, &raft.Log{Index: i, Term: 3, Data: entryData(i)})
	}
	if err := logs.StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	if compacted > 0 {
		recorded, err := raftguard.NewRecordedSnapshots(f.snapshots, f.store)
		if err != nil {
			t.Fatal(err)
		}
		writeSnapshot(t, recorded, compacted)
		if err := logs.DeleteRange(1, compacted); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func entryData(i uint64) []byte { return bytes.Repeat([]byte{byte(i)}, int(30*i)) }

// wantLog opens the folder as a server does, and returns the kind of its log.
func wantLog(t *testing.T, path string, first, last uint64) string {
	t.Helper()
	f := mustOpen(t, path)
	defer mustClose(t, f)
	if f.self.Lost != "" {
		t.Fatalf("the folder has lost %s", f.self.Lost)
	}
	logs := raftguard.NewChecksum(f.logs)
	begin, err1 := logs.FirstIndex()
	end, err2 := logs.LastIndex()
	if begin != first || end != last || err1 != nil || err2 != nil {
		t.Fatalf("the %s log reaches from %d to %d (%v), want %d to %d", f.logs.kind, begin, end, errors.Join(err1, err2),
			first, last)
	}
	for i := first; i <= last; i++ {
		var got raft.Log
		if err := logs.GetLog(i, &got); err != nil || got.Term != 3 || !bytes.Equal(got.Data, entryData(i)) {
			t.Fatalf("entry %d of the %s log: %v", i, f.logs.kind, err)
		}
	}
	return f.logs.kind
}

func copyFolder(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestMigrationCanBeKilledAtEveryStep stops the migration after each of its steps. A server that starts then has the
// complete log, and so has one that starts after the migration was run again.
func TestMigrationCanBeKilledAtEveryStep(t *testing.T) {
	for _, kinds := range [][2]string{
		{cluster.LogStoreBolt, cluster.LogStoreWAL}, {cluster.LogStoreWAL, cluster.LogStoreBolt},
	} {
		from, to := kinds[0], kinds[1]
		t.Run("from "+from+" to "+to, func(t *testing.T) {
			whole := logFolder(t, from, 20, 300)
			recorded := false
			for kill := 1; ; kill++ {
				path, steps := copyFolder(t, whole), 0
				_, err := migrateLog(path, to, hclog.NewNullLogger(), func(step string) error {
					if steps++; steps < kill {
						return nil
					}
					recorded = step == "recorded"
					return errCrash
				})
				if !errors.Is(err, errCrash) {
					if err != nil || !recorded || kill < 6 {
						t.Fatalf("the migration ended with %v at step %d", err, kill)
					}
					return
				}
				crashed := copyFolder(t, path)
				want := from
				if recorded {
					want = to
				}
				if got := wantLog(t, crashed, 21, 300); got != want {
					t.Fatalf("killed at step %d, the server uses the %s log, want %s", kill, got, want)
				}
				done, err := MigrateLog(path, to, hclog.NewNullLogger())
				if err != nil || done.Changed == recorded {
					t.Fatalf("run again after step %d: %+v, %v", kill, done, err)
				}
				if got := wantLog(t, path, 21, 300); got != to {
					t.Fatalf("after it was run again the server uses the %s log", got)
				}
				wantNoRemains(t, path, to)
			}
		})
	}
}

func wantNoRemains(t *testing.T, path, kind string) {
	t.Helper()
	there, err := pathExists(filepath.Join(path, walFolder))
	if err != nil || there != (kind == cluster.LogStoreWAL) {
		t.Errorf("the folder %s exists: %v (%v), and the log is in %s", walFolder, there, err, kind)
	}
	store, err := boltstore.Open(filepath.Join(path, storeFile), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if last, err := store.LastIndex(); err != nil || (last > 0) != (kind == cluster.LogStoreBolt) {
		t.Errorf("the log in %s ends at %d (%v), and the log is in %s", storeFile, last, err, kind)
	}
}

// TestMigrationOfSpecialLogs converts an empty log, and one with a gap that a snapshot covers.
func TestMigrationOfSpecialLogs(t *testing.T) {
	path := logFolder(t, cluster.LogStoreBolt, 0, 0)
	f, err := openFolder(path, tester, "", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	logs := raftguard.NewChecksum(f.logs)
	for i := range uint64(3) {
		if err := logs.StoreLog(&raft.Log{Index: 1 + i, Term: 3}); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := raftguard.NewRecordedSnapshots(f.snapshots, f.store)
	if err != nil {
		t.Fatal(err)
	}
	writeSnapshot(t, recorded, 9)
	for i := range uint64(4) {
		if err := logs.StoreLog(&raft.Log{Index: 10 + i, Term: 3, Data: entryData(10 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, f)
	for _, to := range []string{cluster.LogStoreWAL, cluster.LogStoreBolt} {
		done, err := MigrateLog(path, to, hclog.NewNullLogger())
		if err != nil || !done.Changed || done.First != 10 || done.Last != 13 {
			t.Fatalf("%+v, %v", done, err)
		}
		if got := wantLog(t, path, 10, 13); got != to {
			t.Fatalf("the log is in %s, want %s", got, to)
		}
	}
	fresh := logFolder(t, cluster.LogStoreWAL, 0, 3)
	if done, err := MigrateLog(fresh, cluster.LogStoreWAL, hclog.NewNullLogger()); err != nil || done.Changed {
		t.Errorf("a folder that has the log store already: %+v, %v", done, err)
	}
}

// TestMigrationRefuses folders that it cannot convert safely, and leaves them as they are.
func TestMigrationRefuses(t *testing.T) {
	open := func(*testing.T, string) {}
	for name, c := range map[string]struct {
		to, says string
		prepare  func(t *testing.T, path string)
	}{
		"an unknown store":  {"paper", `there is no log store "paper"`, open},
		"a folder in use":   {cluster.LogStoreWAL, "is in use by another server", keepOpen},
		"a damaged entry":   {cluster.LogStoreWAL, "log entry 40", damageEntry},
		"a lost snapshot":   {cluster.LogStoreWAL, "lacks entry 1", loseSnapshots},
		"no data folder":    {cluster.LogStoreWAL, "is not a data folder", loseFolder},
		"a missing raft.db": {cluster.LogStoreWAL, "raft.db", loseStore},
	} {
		t.Run(name, func(t *testing.T) {
			path := logFolder(t, cluster.LogStoreBolt, 20, 50)
			c.prepare(t, path)
			done, err := MigrateLog(path, c.to, hclog.NewNullLogger())
			if err == nil || !strings.Contains(err.Error(), c.says) || done.Changed {
				t.Fatalf("got %+v, %v; want an error with %q", done, err, c.says)
			}
			if there, _ := pathExists(filepath.Join(path, walFolder)); there {
				t.Error("a refused migration left a new log")
			}
		})
	}
}

func keepOpen(t *testing.T, path string) {
	t.Helper()
	f := mustOpen(t, path)
	t.Cleanup(func() { mustClose(t, f) })
}

func damageEntry(t *testing.T, path string) {
	t.Helper()
	file := filepath.Join(path, storeFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.ReplaceAll(data, entryData(40), append(entryData(40)[1:], 0))
	if err := os.WriteFile(file, damaged, 0o600); err != nil || bytes.Equal(data, damaged) {
		t.Fatal("nothing was damaged", err)
	}
}

func loseSnapshots(t *testing.T, path string) {
	t.Helper()
	mustRemove(t, path, snapshotsFolder)
}

func loseFolder(t *testing.T, path string) {
	t.Helper()
	mustRemove(t, path)
}

func loseStore(t *testing.T, path string) {
	t.Helper()
	mustRemove(t, path, storeFile)
}

func mustRemove(t *testing.T, path ...string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

// TestAFolderKeepsItsLogStore opens folders with other settings than those they were made with.
func TestAFolderKeepsItsLogStore(t *testing.T) {
	for _, kind := range []string{cluster.LogStoreBolt, cluster.LogStoreWAL} {
		path := logFolder(t, kind, 0, 5)
		if got := wantLog(t, path, 1, 5); got != kind {
			t.Errorf("without a setting a folder with %s uses %s", kind, got)
		}
		for _, want := range []string{cluster.LogStoreBolt, cluster.LogStoreWAL} {
			f, err := openFolder(path, tester, want, hclog.NewNullLogger())
			if want == kind {
				if err != nil {
					t.Errorf("%s: %v", want, err)
				} else {
					mustClose(t, f)
				}
				continue
			}
			command := fmt.Sprintf("quorate log convert --data-dir %s --log-store %s", path, want)
			var other *LogStoreError
			if !errors.As(err, &other) || !strings.HasSuffix(err.Error(), command) {
				t.Errorf("a folder with %s opened as %s: got %v, want an error that ends with %q", kind, want, err, command)
			}
		}
	}
	quoted := &LogStoreError{Folder: "/my data/d'1", Has: "bolt", Want: "wal"}
	if want := `--data-dir '/my data/d'\''1' --log-store wal`; !strings.HasSuffix(quoted.Error(), want) {
		t.Errorf("got %q, want an error that ends with %q", quoted, want)
	}
}

// TestAFolderWithoutARecordHasBolt opens a folder as versions before 0.5 wrote it: nothing records the kind.
func TestAFolderWithoutARecordHasBolt(t *testing.T) {
	path := t.TempDir()
	store, err := boltstore.Open(filepath.Join(path, storeFile), 0)
	if err != nil {
		t.Fatal(err)
	}
	entry := &raft.Log{Index: 1, Term: 3, Data: entryData(1)}
	if err := errors.Join(store.SetUint64([]byte("CurrentTerm"), 3), raftguard.NewChecksum(store).StoreLog(entry),
		store.Close(), tester.writeFile(path)); err != nil {
		t.Fatal(err)
	}
	if got := wantLog(t, path, 1, 1); got != cluster.LogStoreBolt {
		t.Errorf("the folder uses %s", got)
	}
	if _, err := openFolder(path, tester, cluster.LogStoreWAL, hclog.NewNullLogger()); err == nil {
		t.Error("the folder was opened with another log store")
	}
	if _, err := MigrateLog(path, cluster.LogStoreWAL, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	if got := wantLog(t, path, 1, 1); got != cluster.LogStoreWAL {
		t.Errorf("after the migration the folder uses %s", got)
	}
}
