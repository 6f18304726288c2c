// Package walstore stores raft's log in segment files that are only ever appended to, with one sync for each write.
//
// The segments are those of hashicorp/raft-wal. That library takes every unreadable end of its last segment for a write
// that a crash interrupted, and drops it; it also stops working after a crash at the wrong moment of a rotation. [Open]
// therefore verifies and repairs the last segment itself, before the library sees it (tail.go), against a lower bound
// of what was acknowledged (mark.go): a damaged or missing entry up to there stops the start, and what is unreadable
// behind it is removed as an interrupted write.
package walstore

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/quorate/quorate/cluster/atomicfile"
)

// DefaultSegmentBytes is the size at which a segment file is complete and the next one begins. A segment has this size
// from its start, because its space is reserved.
const DefaultSegmentBytes = 16 << 20

// Config describes a log.
type Config struct {
	// Folder contains the segments. It belongs to the log alone.
	Folder string
	// State records which segments exist, durably and atomically, and detects damage by itself. It must stay open until
	// after Close.
	State StateStore
	// SegmentBytes is the size of a segment; default DefaultSegmentBytes.
	SegmentBytes int
	// Files is the file system; default that of the machine.
	Files types.VFS
	// Logger receives what was repaired. Default: none.
	Logger hclog.Logger
}

// CorruptError says that a file of the log is damaged or missing.
type CorruptError struct {
	// Path is the file.
	Path string
	// Reason says what does not match.
	Reason string
}

// Error names the file and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged: %s; acknowledged entries may be gone, so this server must not start with it: "+
		"remove the data folder and let this server join again as a new one, or restore the cluster from a backup when no "+
		"other server is intact", e.Path, e.Reason)
}

// Store is a raft.LogStore in segment files. It is safe for concurrent use, with one writer at a time.
type Store struct {
	folder  string
	wal     *wal.WAL
	mark    *ackMark
	failure *failure
}

var _ raft.LogStore = (*Store)(nil)

// Create makes an empty log. It removes what an interrupted Create left in the folder. The log exists once Create has
// returned.
func Create(c Config) error {
	if err := Remove(c); err != nil {
		return err
	}
	if err := os.Mkdir(c.Folder, 0o700); err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	err := createMark(c.Folder)
	if err == nil {
		err = errors.Join(atomicfile.SyncFolder(c.Folder), atomicfile.SyncFolder(filepath.Dir(c.Folder)))
	}
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	store, err := openVerified(c.withDefaults())
	if err != nil {
		return err
	}
	return store.Close()
}

// Exists reports whether the state names a log.
func Exists(state StateStore) (bool, error) {
	persisted, err := loadState(state)
	return len(persisted.Segments) > 0, err
}

// Remove removes a log, or what is left of one. It is idempotent. The state names the log until its files are gone.
func Remove(c Config) error {
	err := os.RemoveAll(c.Folder)
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(c.Folder))
	}
	known := false
	if err == nil {
		known, err = Exists(c.State)
	}
	if err == nil && known {
		err = saveState(c.State, types.PersistentState{})
	}
	if err != nil {
		return fmt.Errorf("remove the log in %s: %w", c.Folder, err)
	}
	return nil
}

// HasEntries reports whether a folder contains a log to which entries were appended, or may have been.
func HasEntries(folder string) (bool, error) {
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		return false, err
	}
	mark, err := openMark(folder)
	if err != nil {
		return true, nil //nolint:nilerr // it cannot be ruled out
	}
	bound, err := mark.read()
	return err != nil || bound > 0, mark.close()
}

// Open opens a log that Create has made. It returns a *CorruptError if a file is missing or damaged, except for the end
// of the last segment if nothing acknowledged was in it: that end is dropped. It reads the last segment once. The
// content of entries is not verified, see raftguard.VerifyLog.
func Open(c Config) (*Store, error) {
	c = c.withDefaults()
	if err := verifyFolder(c); err != nil {
		return nil, err
	}
	return openVerified(c)
}

func (c Config) withDefaults() Config {
	c.SegmentBytes = cmp.Or(c.SegmentBytes, DefaultSegmentBytes)
	if c.Files == nil {
		c.Files = fs.New()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

func openVerified(c Config) (*Store, error) {
	mark, err := openMark(c.Folder)
	if err != nil {
		return nil, err
	}
	failed := &failure{}
	inner, err := wal.Open(c.Folder,
		wal.WithCodec(entryCodec{}),
		wal.WithMetaStore(&segmentTable{state: c.State, failed: failed}),
		wal.WithSegmentFiler(&segmentFiler{SegmentFiler: segment.NewFiler(c.Folder, c.Files), failed: failed}),
		wal.WithSegmentSize(c.SegmentBytes),
		wal.WithLogger(c.Logger))
	if err != nil {
		return nil, errors.Join(openError(c.Folder, err), mark.close())
	}
	return &Store{folder: c.Folder, wal: inner, mark: mark, failure: failed}, nil
}

func openError(folder string, err error) error {
	if errors.Is(err, types.ErrCorrupt) {
		return &CorruptError{Path: folder, Reason: err.Error()}
	}
	return fmt.Errorf("open the log in %s: %w", folder, err)
}

// StoreLog appends one entry.
func (s *Store) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries without gaps among them, and returns once they are on the disk. After an error the log must
// be closed: its end is unknown.
//
// The first entry must follow the last one. If it does not directly follow it, all earlier entries are dropped: raft
// leaves a gap only after it has installed a snapshot that covers everything before the gap.
func (s *Store) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	if err := s.dropBeforeGap(entries[0].Index); err != nil {
		return err
	}
	if err := s.wal.StoreLogs(entries); err != nil {
		return s.failure.explain(fmt.Errorf("append to the log in %s: %w", s.folder, err))
	}
	return s.mark.write(entries[len(entries)-1].Index)
}

// dropBeforeGap is why this store does not say that it is monotonic: raft would then drop the whole log when it
// installs a snapshot, even the entries above the snapshot, which this server may have acknowledged.
func (s *Store) dropBeforeGap(next uint64) error {
	first, last, err := s.bounds()
	if err != nil || last == 0 || next <= last+1 {
		return err
	}
	return s.DeleteRange(first, last)
}

func (s *Store) bounds() (first, last uint64, err error) {
	if first, err = s.wal.FirstIndex(); err != nil {
		return 0, 0, err
	}
	last, err = s.wal.LastIndex()
	return first, last, err
}

// DeleteRange removes the entries first to last, inclusive, which must include the first or the last entry of the log.
// It returns once that is on the disk. Entries that do not exist are ignored.
func (s *Store) DeleteRange(first, last uint64) error {
	_, end, err := s.bounds()
	if err != nil {
		return err
	}
	if first <= end && last >= end {
		// Before the entries go, because a bound above the end of the log means that entries were lost.
		if err := s.mark.lower(first); err != nil {
			return err
		}
	}
	if err := s.wal.DeleteRange(first, last); err != nil {
		return s.failure.explain(fmt.Errorf("delete the entries %d to %d from the log in %s: %w", first, last, s.folder, err))
	}
	return nil
}

// GetLog reads an entry. It returns raft.ErrLogNotFound if there is none at index, and a *CorruptError if what is there
// is not an entry.
func (s *Store) GetLog(index uint64, entry *raft.Log) error {
	for {
		first, err := s.wal.FirstIndex()
		if err != nil {
			return err
		}
		if index < first {
			return raft.ErrLogNotFound // raft-wal still returns the entries of the last segment that were removed
		}
		err = s.wal.GetLog(index, entry)
		// raft-wal loads its list of segments and then counts the reader in, in two steps. If a removal ends between the
		// two, the reader gets a list whose files are closed already. The next attempt loads a newer list.
		if errors.Is(err, os.ErrClosed) {
			continue
		}
		if errors.Is(err, errNotAnEntry) || errors.Is(err, types.ErrCorrupt) {
			return &CorruptError{Path: s.folder, Reason: fmt.Sprintf("entry %d cannot be read: %v", index, err)}
		}
		return err
	}
}

// FirstIndex returns the first index of the log, 0 when it is empty.
func (s *Store) FirstIndex() (uint64, error) { return s.wal.FirstIndex() }

// LastIndex returns the last index of the log, 0 when it is empty.
func (s *Store) LastIndex() (uint64, error) { return s.wal.LastIndex() }

// Close closes the log. It is idempotent.
func (s *Store) Close() error { return errors.Join(s.wal.Close(), s.mark.close()) }
