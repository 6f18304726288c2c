package walstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cluster/atomicfile"
)

const (
	markFile = "acknowledged"
	// markSyncInterval is how long after a write the mark is synced, together with the marks of all writes since.
	markSyncInterval = time.Second
	// epochFile has the text of WriteEpoch.
	epochFile = "epoch"

	markMagic = "qwal-ack"
	markBytes = len(markMagic) + 8 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ackMark is a file with the index of the last entry whose write has returned: a lower bound of what the log must
// contain.
//
// It is written after each append without a sync, which costs two microseconds instead of a second sync. The system
// keeps what a killed process has written, so the bound is exact unless the machine itself crashed. For that case it is
// synced in the background at most once a second, so it is at most a second and one sync old. It is also synced before
// entries at the end are removed, and at Close.
type ackMark struct {
	file *os.File
	path string
	// sync makes the file durable: file.Sync, except in tests.
	sync func() error
	// scheduled is true while a sync is to come that covers the next write.
	scheduled atomic.Bool
	// failed is the error of a sync in the background; nil if there was none.
	failed atomic.Pointer[error]
}

func newMark(file *os.File) *ackMark { return &ackMark{file: file, path: file.Name(), sync: file.Sync} }

func createMark(folder string) error {
	file, err := os.OpenFile(filepath.Join(folder, markFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	m := newMark(file)
	return errors.Join(m.write(0), m.close())
}

func openMark(folder string) (*ackMark, error) {
	path := filepath.Join(folder, markFile)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &CorruptError{Path: path, Reason: "it is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return newMark(file), nil
}

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

// write sets the bound. All of it is in one sector, so a crash leaves the old one or the new one. It returns the error
// of an earlier sync in the background.
func (m *ackMark) write(index uint64) error {
	raw := make([]byte, 0, markBytes)
	raw = append(raw, markMagic...)
	raw = binary.BigEndian.AppendUint64(raw, index)
	raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	if _, err := m.file.WriteAt(raw, 0); err != nil {
		return fmt.Errorf("record the end of the log: %w", err)
	}
	if !m.scheduled.Swap(true) {
		time.AfterFunc(markSyncInterval, m.syncScheduled)
	}
	if failed := m.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

func (m *ackMark) syncScheduled() {
	m.scheduled.Store(false) // before the sync: it may miss a write that comes from now on
	if err := m.sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		err = fmt.Errorf("record the end of the log: %w", err)
		m.failed.Store(&err)
	}
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
	if err := m.sync(); err != nil {
		return fmt.Errorf("record the end of the log: %w", err)
	}
	return nil
}

// close makes the bound durable. It is idempotent.
func (m *ackMark) close() error {
	if err := m.sync(); errors.Is(err, os.ErrClosed) {
		return nil
	} else if err != nil {
		return errors.Join(fmt.Errorf("record the end of the log: %w", err), m.file.Close())
	}
	return m.file.Close()
}

// WriteEpoch writes a short text into the folder of a log, durably and atomically. It may be called before or after the
// log is open, and says to which other files of a data folder the log belongs.
func WriteEpoch(folder, text string) error {
	err := atomicfile.Write(filepath.Join(folder, epochFile), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the epoch of the log: %w", err)
	}
	return nil
}

// ReadEpoch returns what WriteEpoch has written; empty if nothing was.
func ReadEpoch(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, epochFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the epoch of the log: %w", err)
	}
	return string(text), nil
}
