package raftguard

import (
	"sync"

	"github.com/hashicorp/raft"
)

// LogCache is a log store that keeps its newest entries in memory, bounded in number and bytes. raft's own LogCache
// keeps the pointers that it is given; on a leader they point into the futures of the entries, so the answers of all
// commands stayed in memory with them.
type LogCache struct {
	raft.LogStore

	maxBytes int

	mu sync.RWMutex
	// ring has the entries first to last, each at its index modulo the length; none if first is 0.
	ring        []raft.Log
	first, last uint64
	bytes       int
	// stored is the index of the entry that was stored last. appended is closed at the next one; nil if nobody waits.
	stored   uint64
	appended chan struct{}
}

// NewLogCache wraps a log store.
func NewLogCache(logs raft.LogStore, entries, maxBytes int) *LogCache {
	return &LogCache{LogStore: logs, maxBytes: maxBytes, ring: make([]raft.Log, entries)}
}

// IsMonotonic reports whether the wrapped log store tolerates no gaps.
func (c *LogCache) IsMonotonic() bool { return isMonotonic(c.LogStore) }

// HeldBytes returns the size of the entries that are kept in memory.
func (c *LogCache) HeldBytes() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.bytes
}

// GetLog returns an entry from memory or from the store.
func (c *LogCache) GetLog(index uint64, entry *raft.Log) error {
	if c.findCached(index, entry) {
		return nil
	}
	return c.LogStore.GetLog(index, entry)
}

func (c *LogCache) findCached(index uint64, entry *raft.Log) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.first == 0 || index < c.first || index > c.last {
		return false
	}
	*entry = *c.slot(index)
	return true
}

// StoreLog appends one entry.
func (c *LogCache) StoreLog(entry *raft.Log) error { return c.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries, and keeps copies once they are stored.
func (c *LogCache) StoreLogs(entries []*raft.Log) error {
	if err := c.LogStore.StoreLogs(entries); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range entries {
		c.keepEntry(entry)
	}
	if len(entries) > 0 {
		c.stored = entries[len(entries)-1].Index
	}
	if c.appended != nil {
		close(c.appended)
		c.appended = nil
	}
	return nil
}

// Appended is closed when an entry behind an index has been stored since this program started.
func (c *LogCache) Appended(index uint64) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored > index {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if c.appended == nil {
		c.appended = make(chan struct{})
	}
	return c.appended
}

// DeleteRange deletes entries, and forgets all that are in memory: an index may get another entry.
func (c *LogCache) DeleteRange(from, to uint64) error {
	c.mu.Lock()
	c.clear()
	c.mu.Unlock()
	return c.LogStore.DeleteRange(from, to)
}

// keepEntry must be called with mu held.
func (c *LogCache) keepEntry(entry *raft.Log) {
	size := entrySize(entry)
	if c.first != 0 && entry.Index != c.last+1 || size > c.maxBytes {
		c.clear()
	}
	if size > c.maxBytes {
		return
	}
	for c.first != 0 && (c.bytes+size > c.maxBytes || entry.Index-c.first >= uint64(len(c.ring))) {
		c.dropOldest()
	}
	*c.slot(entry.Index) = *entry
	if c.first == 0 {
		c.first = entry.Index
	}
	c.last = entry.Index
	c.bytes += size
}

func (c *LogCache) dropOldest() {
	oldest := c.slot(c.first)
	c.bytes -= entrySize(oldest)
	*oldest = raft.Log{}
	if c.first == c.last {
		c.first, c.last = 0, 0
		return
	}
	c.first++
}

func (c *LogCache) clear() {
	clear(c.ring)
	c.first, c.last, c.bytes = 0, 0, 0
}

func (c *LogCache) slot(index uint64) *raft.Log { return &c.ring[index%uint64(len(c.ring))] }

func entrySize(entry *raft.Log) int { return len(entry.Data) + len(entry.Extensions) }
