package raftguard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	snapshotsFolder = "snapshots"         // where raft.FileSnapshotStore keeps them, below its base
	corruptFolder   = "snapshots-corrupt" // next to it, so that raft does not list what is set aside
	unfinished      = ".tmp"              // ends the name of a snapshot that is being written
	snapshotName    = "%d-%d-%d"          // term, index, milliseconds
)

// CorruptSnapshotError says that the newest snapshot is corrupt and cannot be replaced from this disk.
type CorruptSnapshotError struct {
	// Path is the folder of the snapshot.
	Path string
	// Cause is the error found in it.
	Cause error
	// Gap says why an older snapshot and the log do not replace it.
	Gap string
}

// Error names the snapshot and what to do.
func (e *CorruptSnapshotError) Error() string {
	return fmt.Sprintf("the newest snapshot %s is corrupt (%v) and cannot be replaced from this disk (%s); remove the "+
		"data folder and let this server join again as a new one, or restore the cluster from a backup when "+
		"no other server "+
		"is intact", e.Path, e.Cause, e.Gap)
}

// Unwrap returns the error found in the snapshot.
func (e *CorruptSnapshotError) Unwrap() error { return e.Cause }

// SweepSnapshots removes the unfinished snapshots that a crash left below base, the folder given to
// raft.NewFileSnapshotStore, which never removes them itself. It returns their names. Call it before raft starts.
func SweepSnapshots(base string) ([]string, error) {
	folder := filepath.Join(base, snapshotsFolder)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for unfinished snapshots: %w", err)
	}
	var swept []string
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasSuffix(entry.Name(), unfinished) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			return swept, fmt.Errorf("remove an unfinished snapshot: %w", err)
		}
		swept = append(swept, entry.Name())
	}
	return swept, nil
}

// VerifySnapshots checks that raft will start from the newest snapshot below base, the folder of the file store
// snapshots. raft itself silently skips a corrupt snapshot and may start from an earlier state.
//
// The newest snapshot must be listed, match the store's checksum and satisfy check, which reads the state to its end. A
// corrupt one is an error, a *CorruptSnapshotError, unless the log and an older intact snapshot, or a complete log
// alone, reach as far. Then the corrupt snapshots are moved to the folder snapshots-corrupt with a warning, and raft
// replays the log instead. Call it before raft starts and before RepairTail.
func VerifySnapshots(base string, snapshots raft.SnapshotStore, logs raft.LogStore, check func(io.Reader) error,
	logger hclog.Logger,
) error {
	present, err := storedSnapshots(base)
	if err != nil {
		return err
	}
	intact, cause := 0, error(nil)
	for ; intact < len(present); intact++ {
		err := verifySnapshot(snapshots, present[intact], check)
		if err == nil {
			break
		}
		if cause == nil {
			cause = err
		}
	}
	if intact == 0 {
		return nil
	}
	var older storedSnapshot
	if intact < len(present) {
		older = present[intact]
	}
	if gap := gapBetween(logs, older, present[0]); gap != "" {
		return &CorruptSnapshotError{Path: present[0].path, Cause: cause, Gap: gap}
	}
	return setAside(base, present[:intact], cause, logger)
}

// storedSnapshot is a snapshot as described by the name of its folder, which is valid even if its content is corrupt.
type storedSnapshot struct {
	name, path  string
	index, term uint64
}

// storedSnapshots returns the newest first. Folders with other names are ignored.
func storedSnapshots(base string) ([]storedSnapshot, error) {
	folder := filepath.Join(base, snapshotsFolder)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for snapshots: %w", err)
	}
	var found []storedSnapshot
	for _, entry := range entries {
		s := storedSnapshot{name: entry.Name(), path: filepath.Join(folder, entry.Name())}
		var millis int64
		if n, err := fmt.Sscanf(s.name, snapshotName, &s.term, &s.index, &millis); n != 3 || err != nil {
			continue
		}
		if s.name == fmt.Sprintf(snapshotName, s.term, s.index, millis) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, newestFirst)
	return found, nil
}

// newestFirst orders as raft.FileSnapshotStore does: by term, then index, then name.
func newestFirst(a, b storedSnapshot) int {
	switch {
	case a.term != b.term:
		return compareDown(a.term, b.term)
	case a.index != b.index:
		return compareDown(a.index, b.index)
	default:
		return strings.Compare(b.name, a.name)
	}
}

func compareDown(a, b uint64) int {
	if a > b {
		return -1
	}
	return 1
}

func verifySnapshot(snapshots raft.SnapshotStore, stored storedSnapshot, check func(io.Reader) error) error {
	meta, state, err := snapshots.Open(stored.name)
	if err != nil {
		return fmt.Errorf("open it: %w", err)
	}
	defer func() { _ = state.Close() }() // read only: nothing can be lost
	if meta.Index != stored.index || meta.Term != stored.term || meta.ID != stored.name {
		return fmt.Errorf("its meta.json says that it is %s, index %d, term %d", meta.ID, meta.Index, meta.Term)
	}
	return check(state)
}

// gapBetween is empty if the log is complete.
func gapBetween(logs raft.LogStore, older, newest storedSnapshot) string {
	var entry raft.Log
	for index := older.index + 1; index <= newest.index; index++ {
		if err := logs.GetLog(index, &entry); err != nil {
			return fmt.Sprintf("log entry %d: %v", index, err)
		}
	}
	if entry.Term != newest.term {
		return fmt.Sprintf("log entry %d is of term %d, the snapshot of term %d", newest.index, entry.Term, newest.term)
	}
	return ""
}

func setAside(base string, corrupt []storedSnapshot, cause error, logger hclog.Logger) error {
	folder := filepath.Join(base, corruptFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("set corrupt snapshots aside: %w", err)
	}
	for _, s := range corrupt {
		if err := os.Rename(s.path, filepath.Join(folder, s.name)); err != nil {
			return fmt.Errorf("set corrupt snapshots aside: %w", err)
		}
		logger.Warn("set a corrupt snapshot aside; the log and an older snapshot replace it",
			"snapshot", s.name, "moved-to", folder, "newest-error", cause)
	}
	return nil
}
