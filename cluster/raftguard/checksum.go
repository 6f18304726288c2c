package raftguard

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// CorruptEntryError says that a stored log entry is not what was written.
type CorruptEntryError struct {
	// Index is the raft index of the entry.
	Index uint64
	// Reason says what does not match.
	Reason string
}

// Error names the entry and what to do.
func (e *CorruptEntryError) Error() string {
	return fmt.Sprintf("log entry %d in the data folder is corrupt: %s; do not trust this disk: remove the data folder "+
		"and let this server join again as a new one; the other servers have the entry", e.Index, e.Reason)
}

// checksumMark starts the extensions of every entry that Checksum stored; its last byte is the version of the format.
const checksumMark = "qck\x01"

// checksumSize is the size of the mark and the CRC-32C, which precede the entry's own extensions.
const checksumSize = len(checksumMark) + crc32.Size

// Checksum is a raft.LogStore that stores a CRC-32C with each entry and verifies it on every read.
//
// The checksum covers index, term, type, data and extensions, but not AppendedAt, on which nothing depends. It is
// stored in raft.Log.Extensions, which raft itself does not interpret. Readers get the entry without the checksum, so
// it is neither sent to followers nor has to match between servers.
type Checksum struct {
	raft.LogStore
}

var _ raft.MonotonicLogStore = (*Checksum)(nil)

// NewChecksum wraps inner, all of whose entries must have been stored through a Checksum.
func NewChecksum(inner raft.LogStore) *Checksum { return &Checksum{LogStore: inner} }

// GetLog reads the entry at index. It returns a *CorruptEntryError when the entry is not what was stored.
func (c *Checksum) GetLog(index uint64, entry *raft.Log) error {
	if err := c.LogStore.GetLog(index, entry); err != nil {
		return err
	}
	return stripChecksum(index, entry)
}

// StoreLog stores one entry with its checksum. The entry itself is not changed.
func (c *Checksum) StoreLog(entry *raft.Log) error {
	return c.StoreLogs([]*raft.Log{entry})
}

// StoreLogs stores the entries with their checksums. The entries themselves are not changed, because they may be in
// use: a leader's are in flight, and a follower's belong to the transport.
func (c *Checksum) StoreLogs(entries []*raft.Log) error {
	sealed := make([]raft.Log, len(entries))
	pointers := make([]*raft.Log, len(entries))
	for i, entry := range entries {
		sealed[i] = addChecksum(entry)
		pointers[i] = &sealed[i]
	}
	return c.LogStore.StoreLogs(pointers)
}

// IsMonotonic reports whether the wrapped log store tolerates no gaps.
func (c *Checksum) IsMonotonic() bool { return isMonotonic(c.LogStore) }

func addChecksum(entry *raft.Log) raft.Log {
	sealed := *entry
	sealed.Extensions = make([]byte, 0, checksumSize+len(entry.Extensions))
	sealed.Extensions = append(sealed.Extensions, checksumMark...)
	sealed.Extensions = binary.BigEndian.AppendUint32(sealed.Extensions, checksumOf(entry))
	sealed.Extensions = append(sealed.Extensions, entry.Extensions...)
	return sealed
}

func stripChecksum(index uint64, entry *raft.Log) error {
	if entry.Index != index {
		return &CorruptEntryError{Index: index, Reason: fmt.Sprintf("it says that it is entry %d", entry.Index)}
	}
	stored := entry.Extensions
	if len(stored) < checksumSize || string(stored[:len(checksumMark)]) != checksumMark {
		return &CorruptEntryError{Index: index, Reason: "its checksum is missing"}
	}
	want := binary.BigEndian.Uint32(stored[len(checksumMark):])
	entry.Extensions = nil
	if own := stored[checksumSize:]; len(own) > 0 {
		entry.Extensions = own
	}
	if got := checksumOf(entry); got != want {
		return &CorruptEntryError{Index: index, Reason: fmt.Sprintf("its checksum is %08x instead of %08x", got, want)}
	}
	return nil
}

// checksumOf includes the length of the data, so that no byte can move between data and extensions.
func checksumOf(entry *raft.Log) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once by the standard library
	var head [25]byte
	binary.BigEndian.PutUint64(head[0:], entry.Index)
	binary.BigEndian.PutUint64(head[8:], entry.Term)
	head[16] = byte(entry.Type)
	binary.BigEndian.PutUint64(head[17:], uint64(len(entry.Data)))
	sum := crc32.Update(0, table, head[:])
	sum = crc32.Update(sum, table, entry.Data)
	return crc32.Update(sum, table, entry.Extensions)
}
