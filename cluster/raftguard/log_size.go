package raftguard

import (
	"slices"
	"sort"
	"sync"

	"github.com/hashicorp/raft"
)

// LogSize is a log store that knows the size of each entry in it. raft counts entries, which differ in size by a factor
// of a hundred thousand.
//
// It learns the sizes of entries that exist already when they are read in order, as VerifyLog does.
type LogSize struct {
	raft.LogStore

	mu sync.Mutex
	// sums has, for each entry from first on, the number of bytes up to its end, counted from anywhere; start is the
	// number before the first one. A log with a gap is known from after the gap on: what is before goes first.
	first uint64
	start uint64
	sums  []uint64
	// gone is the last entry that was removed at the beginning.
	gone uint64
}

// NewLogSize wraps a log store.
func NewLogSize(logs raft.LogStore) *LogSize { return &LogSize{LogStore: logs} }

// IsMonotonic reports whether the wrapped log store tolerates no gaps.
func (s *LogSize) IsMonotonic() bool { return isMonotonic(s.LogStore) }

// GetLog reads an entry.
func (s *LogSize) GetLog(index uint64, entry *raft.Log) error {
	if err := s.LogStore.GetLog(index, entry); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	isKnown := index >= s.first && index < s.nextIndex()
	if !isKnown && index > s.gone { // otherwise it was deleted while it was read
		s.recordEntry(entry)
	}
	return nil
}

// StoreLog appends one entry.
func (s *LogSize) StoreLog(entry *raft.Log) error { return s.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries.
func (s *LogSize) StoreLogs(entries []*raft.Log) error {
	if err := s.LogStore.StoreLogs(entries); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range entries {
		s.recordEntry(entry)
	}
	return nil
}

// DeleteRange deletes entries at the beginning or at the end of the log.
func (s *LogSize) DeleteRange(from, to uint64) error {
	if err := s.LogStore.DeleteRange(from, to); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if to+1 < s.nextIndex() {
		s.gone = max(s.gone, to)
		s.forgetBefore(to + 1)
	} else {
		s.forgetFrom(from)
	}
	return nil
}

// BytesBetween returns the size of the entries above one index and up to another.
func (s *LogSize) BytesBetween(after, through uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sumThrough(max(after, through)) - s.sumThrough(after)
}

// EntriesWithin returns how many of the newest entries have at most so many bytes together.
func (s *LogSize) EntriesWithin(bytes uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.sumThrough(s.nextIndex())
	if all-s.start <= bytes {
		return uint64(len(s.sums))
	}
	oldest := sort.Search(len(s.sums), func(i int) bool { return all-s.sums[i] <= bytes })
	return uint64(len(s.sums) - 1 - oldest)
}

// The methods below must be called with mu held.

func (s *LogSize) nextIndex() uint64 { return s.first + uint64(len(s.sums)) }

func (s *LogSize) sumThrough(index uint64) uint64 {
	switch {
	case len(s.sums) == 0 || index < s.first:
		return s.start
	case index >= s.nextIndex():
		return s.sums[len(s.sums)-1]
	}
	return s.sums[index-s.first]
}

func (s *LogSize) recordEntry(entry *raft.Log) {
	s.forgetFrom(entry.Index)
	if entry.Index != s.nextIndex() || len(s.sums) == 0 {
		s.first, s.start, s.sums = entry.Index, 0, nil
	}
	s.sums = append(s.sums, s.sumThrough(entry.Index)+uint64(entrySize(entry)))
}

func (s *LogSize) forgetFrom(index uint64) {
	if index < s.nextIndex() {
		s.sums = s.sums[:max(index, s.first)-s.first]
	}
}

func (s *LogSize) forgetBefore(index uint64) {
	if index <= s.first || len(s.sums) == 0 {
		return
	}
	s.start = s.sumThrough(index - 1)
	s.sums = slices.Clone(s.sums[index-s.first:])
	s.first = index
}
