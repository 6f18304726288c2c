package walstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

const (
	markFile  = "acknowledged"
	markMagic = "qwal-ack"
	markBytes = len(markMagic) + 8 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ackMark is a file that holds the index of the last entry whose write has returned: a lower bound of what the log must
// contain.
//
// It is written after each append without a sync, which costs two microseconds instead of a second sync. The system
// keeps what a killed process has written, so the bound is exact unless the machine itself crashed; then it is as old
// as the last write-back, at most about half a minute. It is synced before entries at the end are removed, and at
// Close.
type ackMark struct {
	file *os.File
	path string
}

func createMark(folder string) error {
	file, err := os.OpenFile(filepath.Join(folder, markFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	m := &ackMark{file: file, path: file.Name()}
	return errors.Join(m.write(0), m.close())
}

// openMark opens the mark for writing.
func openMark(folder string) (*ackMark, error) {
	path := filepath.Join(folder, markFile)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &CorruptError{Path: path, Reason: "it is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return &ackMark{file: file, path: path}, nil
}

// read returns the bound.
func (m *ackMark) read() (uint64, error) {
	raw := make([]byte, markBytes+1)
	n, err := m.file.ReadAt(raw, 0)
	if n != markBytes {
		return 0, &CorruptError{Path: m.path, Reason: fmt.Sprintf("it has %d bytes instead of %d (%v)", n, markBytes, err)}
	}
	raw = raw[:markBytes]
	sum := binary.BigEndian.Uint32(raw[markBytes-crc32.Size:])
	if string(raw[:len(markMagic)]) != markMagic || crc32.Checksum(raw[:markBytes-crc32.Size], castagnoli) != sum {
		return 0, &CorruptError{Path: m.path, Reason: "its checksum does not match"}
	}
	return binary.BigEndian.Uint64(raw[len(markMagic):]), nil
}

// write sets the bound. All of it is in one sector, so a crash leaves the old one or the new one.
func (m *ackMark) write(index uint64) error {
	raw := make([]byte, 0, markBytes)
	raw = append(raw, markMagic...)
	raw = binary.BigEndian.AppendUint64(raw, index)
	raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	if _, err := m.file.WriteAt(raw, 0); err != nil {
		return fmt.Errorf("record the end of the log: %w", err)
	}
	return nil
}

// lower makes sure, durably, that the bound is below an index.
func (m *ackMark) lower(below uint64) error {
	bound, err := m.read()
	if err != nil || bound < below {
		return err
	}
	if err := m.write(below - 1); err != nil {
		return err
	}
	if err := m.file.Sync(); err != nil {
		return fmt.Errorf("record the end of the log: %w", err)
	}
	return nil
}

// close makes the bound durable. It is idempotent.
func (m *ackMark) close() error {
	if err := m.file.Sync(); errors.Is(err, os.ErrClosed) {
		return nil
	} else if err != nil {
		return errors.Join(fmt.Errorf("record the end of the log: %w", err), m.file.Close())
	}
	return m.file.Close()
}
