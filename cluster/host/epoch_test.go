package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/raftguard"
)

type partCopies struct {
	t    *testing.T
	path string
	to   string
}

func copyParts(t *testing.T, path string, parts ...string) partCopies {
	t.Helper()
	c := partCopies{t, path, t.TempDir()}
	for _, part := range parts {
		c.replacePart(filepath.Join(c.to, part), filepath.Join(path, part))
	}
	return c
}

func (c partCopies) putBack(parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		c.replacePart(filepath.Join(c.path, part), filepath.Join(c.to, part))
	}
}

func (c partCopies) replacePart(to, from string) {
	c.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		c.t.Fatal(err)
	}
	if info, err := os.Stat(from); err != nil {
		c.t.Fatal(err)
	} else if info.IsDir() {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// stopOrderly does what a node does before it closes its folder, unless it failed.
func stopOrderly(t *testing.T, f *dataFolder) {
	t.Helper()
	if err := f.beginEpoch(); err != nil {
		t.Fatal(err)
	}
}

func appendEntries(t *testing.T, f *dataFolder, first, last uint64) {
	t.Helper()
	for i := first; i <= last; i++ {
		if err := raftguard.NewChecksum(f.logs).StoreLog(&raft.Log{Index: i, Term: 3}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPartThatWasSetBackIsNoticed sets every proper subset of the parts of a folder back to an earlier copy. The
// entries that were appended since would be gone, or the votes.
func TestAPartThatWasSetBackIsNoticed(t *testing.T) {
	for _, c := range []struct {
		logStore string
		setBack  []string
		want     string
	}{
		{cluster.LogStoreWAL, []string{walFolder}, "lost: wal was set back to an earlier copy"},
		{cluster.LogStoreWAL, []string{storeFile}, "lost: raft.db was set back to an earlier copy"},
		{cluster.LogStoreWAL, []string{identityFile}, "whole"}, // it holds no entries and no votes
		{cluster.LogStoreWAL, []string{walFolder, storeFile}, "lost: raft.db was set back to an earlier copy"},
		{cluster.LogStoreWAL, []string{walFolder, identityFile}, "lost: wal was set back to an earlier copy"},
		{cluster.LogStoreWAL, []string{storeFile, identityFile}, "lost: raft.db was set back to an earlier copy"},
		{cluster.LogStoreBolt, []string{storeFile}, "lost: raft.db was set back to an earlier copy"},
		{cluster.LogStoreBolt, []string{identityFile}, "whole"},
	} {
		for _, copied := range []string{"before a start", "before a stop", "before a start that was killed"} {
			t.Run(fmt.Sprint(c.logStore, " ", c.setBack, ", copied ", copied), func(t *testing.T) {
				t.Parallel()
				path := t.TempDir()
				fillFolderOf(t, path, c.logStore, 1, 9)
				var before partCopies
				if copied != "before a stop" {
					before = copyParts(t, path, c.setBack...)
				}
				f := mustOpen(t, path)
				if copied == "before a stop" {
					before = copyParts(t, path, c.setBack...)
				}
				appendEntries(t, f, 10, 29)
				if !strings.HasSuffix(copied, "killed") {
					stopOrderly(t, f)
				}
				mustClose(t, f)
				before.putBack(c.setBack...)
				for start := range 2 {
					if got := openOutcome(t, path); !strings.HasPrefix(got, c.want) {
						t.Errorf("start %d: got %q, want %q", start+1, got, c.want)
					}
				}
			})
		}
	}
}

// TestACrashBetweenTheStepsOfAnEpoch crashes after each step of the beginning of an epoch, several times in a row.
func TestACrashBetweenTheStepsOfAnEpoch(t *testing.T) {
	for _, logStore := range []string{cluster.LogStoreBolt, cluster.LogStoreWAL} {
		path := t.TempDir()
		fillFolderOf(t, path, logStore, 1, 9)
		for _, crash := range []int{0, 1, 2, 3, 4, 2, 3, 1, 1, 3} {
			before := copyParts(t, path, storeFile)
			f := mustOpen(t, path)
			known, err := readEpochs(f.store)
			if err != nil {
				t.Fatal(err)
			}
			known.Next = known.Current.next()
			for _, step := range f.epochSteps(known)[:crash] {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, f)
			if got := openOutcome(t, path); got != "whole" {
				t.Fatalf("%s, after %d steps: got %q", logStore, crash, got)
			}
			whole := copyParts(t, path, storeFile)
			before.putBack(storeFile)
			owner, err := readIdentity(path)
			if err != nil {
				t.Fatal(err)
			}
			if lost := lostBySetBack(t, path, owner); !strings.HasPrefix(lost, "raft.db was set back") {
				t.Fatalf("%s, after %d steps and with an earlier raft.db: got %q", logStore, crash, lost)
			}
			whole.putBack(storeFile)
		}
	}
}

func lostBySetBack(t *testing.T, path string, owner identity) string {
	t.Helper()
	f := &dataFolder{path: path, log: hclog.NewNullLogger(), self: owner}
	defer func() { _ = f.closeStore() }()
	err := f.openStores()
	var missing *missingLogError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v", err)
	}
	return missing.lost
}

// TestFoldersOfEarlierVersionsGetAnEpoch: a folder without epochs is whole, also one whose identity.json was written by
// an earlier version in between. From then on parts that are set back are noticed.
func TestFoldersOfEarlierVersionsGetAnEpoch(t *testing.T) {
	for _, logStore := range []string{cluster.LogStoreBolt, cluster.LogStoreWAL} {
		path := t.TempDir()
		fillFolderOf(t, path, logStore, 1, 9)
		f := mustOpen(t, path)
		named := f.self.Store
		if err := f.store.Set(epochKey, nil); err != nil {
			t.Fatal(err)
		}
		mustClose(t, f)
		if err := os.Remove(filepath.Join(path, walFolder, "epoch")); err != nil && logStore == cluster.LogStoreWAL {
			t.Fatal(err)
		}
		writeIdentity(t, filepath.Join(path, identityFile), `{"id":"n1","cluster":"blue","format":1,"store":"`+named+`"}`)
		parts := []string{storeFile}
		if logStore == cluster.LogStoreWAL {
			parts = append(parts, walFolder)
		}
		before := copyParts(t, path, parts...)
		for range 2 {
			if got := openOutcome(t, path); got != "whole" {
				t.Fatalf("%s: got %q", logStore, got)
			}
		}
		writeIdentity(t, filepath.Join(path, identityFile), `{"id":"n1","cluster":"blue","format":1,"store":"`+named+`"}`)
		for range 2 {
			if got := openOutcome(t, path); got != "whole" {
				t.Fatalf("%s, after an earlier version: got %q", logStore, got)
			}
		}
		part := slices.Max(parts)
		before.putBack(part)
		if got := openOutcome(t, path); !strings.HasPrefix(got, "lost: "+part+" was set back") {
			t.Errorf("%s: got %q", logStore, got)
		}
	}
}

// TestToolsRefuseAFolderThatWasSetBack: what works on the folder of a stopped node must not use it either.
func TestToolsRefuseAFolderThatWasSetBack(t *testing.T) {
	path := t.TempDir()
	fillFolderOf(t, path, cluster.LogStoreWAL, 1, 9)
	before := copyParts(t, path, walFolder)
	mustClose(t, mustOpen(t, path))
	before.putBack(walFolder)
	_, err := ComputeDigests(path, hclog.NewNullLogger())
	if err == nil || !strings.Contains(err.Error(), "wal was set back") {
		t.Errorf("got %v", err)
	}
}

// TestAFullDiskKeepsTheEpoch: a server must start on a full disk.
func TestAFullDiskKeepsTheEpoch(t *testing.T) {
	path := t.TempDir()
	fillFolderOf(t, path, cluster.LogStoreWAL, 1, 9)
	f := mustOpen(t, path)
	known, err := readEpochs(f.store)
	if err != nil {
		t.Fatal(err)
	}
	full := func() error { return fmt.Errorf("write: %w", syscall.ENOSPC) }
	if err := f.runEpochSteps([]func() error{full, func() error { t.Error("a later step ran"); return nil }}); err != nil {
		t.Error(err)
	}
	if now, err := readEpochs(f.store); err != nil || now != known {
		t.Errorf("the epochs were %v and are %v, %v", known, now, err)
	}
	mustClose(t, f)
}
