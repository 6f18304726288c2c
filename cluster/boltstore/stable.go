package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Set stores value under key, with a CRC-32C over both: a vote that changed on disk would allow the node to vote twice.
func (s *Store) Set(key, value []byte) error {
	return s.BoltStore.Set(key, addChecksum(key, value))
}

// Get returns the value under key. It returns raftboltdb.ErrKeyNotFound, as raft expects, when there is none, and a
// *CorruptError when it is not what was stored.
func (s *Store) Get(key []byte) ([]byte, error) {
	stored, err := s.BoltStore.Get(key)
	if err != nil {
		return nil, err
	}
	value, err := stripChecksum(key, stored)
	if err != nil {
		return nil, &CorruptError{Path: s.path, Reason: err.Error()}
	}
	return value, nil
}

// SetUint64 stores a number under key.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns the number under key, with the errors of Get.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, &CorruptError{Path: s.path, Reason: fmt.Sprintf("the stored value %q is not a number", key)}
	}
	return binary.BigEndian.Uint64(value), nil
}

// logKindKey is the key under which the file records where the log is. Servers before v0.5 show the key when they
// refuse the file, so it tells their operators what to do.
var logKindKey = []byte("log store, recorded by v0.5 or later: run its quorate migrate-log --to bolt first")

// boltKind is the kind of a log in this file. Every server can open such a file.
const boltKind = "bolt"

// SetLogKind records where the log is: "bolt" for this file, anything else for another store. It is atomic.
func (s *Store) SetLogKind(kind string) error { return s.Set(logKindKey, []byte(kind)) }

// LogKind returns what SetLogKind recorded; empty if nothing was.
func (s *Store) LogKind() (string, error) {
	kind, err := s.Get(logKindKey)
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return "", nil
	}
	return string(kind), err
}

func addChecksum(key, value []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, checksumOf(key, value)), value...)
}

func stripChecksum(key, stored []byte) ([]byte, error) {
	if len(stored) < crc32.Size {
		return nil, fmt.Errorf("the stored value %q has no checksum", key)
	}
	value := stored[crc32.Size:]
	if checksumOf(key, value) != binary.BigEndian.Uint32(stored) {
		return nil, fmt.Errorf("the checksum of the stored value %q does not match", key)
	}
	return value, nil
}

func checksumOf(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once by the standard library
	start := uint32(0)
	if bytes.Equal(key, logKindKey) && string(value) != boltKind {
		// A server before v0.5 would take the empty log in this file for the log of the node, and forget what it had
		// acknowledged. It refuses a file with a checksum that it does not expect.
		start = 1
	}
	sum := crc32.Update(start, table, binary.BigEndian.AppendUint32(nil, uint32(len(key))))
	return crc32.Update(crc32.Update(sum, table, key), table, value)
}
