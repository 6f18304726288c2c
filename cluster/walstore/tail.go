package walstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// verifyFolder also repairs the end of the log, so that raft-wal finds nothing to repair.
func verifyFolder(c Config) error {
	persisted, err := loadState(c.State)
	if err != nil {
		return err
	}
	if len(persisted.Segments) == 0 {
		return &CorruptError{Path: c.Folder, Reason: "the list of its segments is missing"}
	}
	mark, err := openMark(c.Folder)
	if err != nil {
		return err
	}
	bound, err := mark.read()
	if err := errors.Join(err, mark.close()); err != nil {
		return err
	}
	for i, info := range persisted.Segments {
		if i == len(persisted.Segments)-1 && info.SealTime.IsZero() {
			break
		}
		if err := verifySealed(c.Folder, info); err != nil {
			return err
		}
	}
	return repairTail(c, persisted, bound)
}

// verifySealed checks that a complete segment is there with its index. Its header is verified by raft-wal, its entries
// by their own checksums.
func verifySealed(folder string, info types.SegmentInfo) error {
	path := filepath.Join(folder, segment.FileName(info))
	stat, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return &CorruptError{Path: path, Reason: fmt.Sprintf("it is missing, with the entries %d to %d", info.MinIndex,
			info.MaxIndex)}
	}
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if need := info.IndexStart + 4*(info.MaxIndex-info.BaseIndex+1); uint64(stat.Size()) < need {
		return &CorruptError{Path: path, Reason: fmt.Sprintf("it is truncated: %d of %d bytes are left", stat.Size(), need)}
	}
	return nil
}

// repairTail verifies the last segment. An incomplete write at its end is removed if it was not acknowledged.
func repairTail(c Config, persisted types.PersistentState, bound uint64) error {
	info := persisted.Segments[len(persisted.Segments)-1]
	if !info.SealTime.IsZero() {
		return &CorruptError{Path: c.Folder, Reason: "the list of its segments has no last one"}
	}
	path := filepath.Join(c.Folder, segment.FileName(info))
	data, written, err := readSegment(path)
	if errors.Is(err, os.ErrNotExist) {
		if bound >= info.BaseIndex {
			return &CorruptError{Path: path, Reason: fmt.Sprintf("it is missing, with the entries %d to %d", info.BaseIndex,
				bound)}
		}
		return nil // the crash came before its first entry, and raft-wal makes it again
	}
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	found := scanSegment(data)
	if err := checkTail(path, data, written, found, info, bound); err != nil {
		return err
	}
	if err := dropTornWrite(c, path, written, found); err != nil {
		return err
	}
	if found.indexAt == 0 {
		return nil
	}
	return completeRotation(c.State, persisted, found)
}

// checkTail returns an error if entries of the last segment are lost that were, or may have been, acknowledged.
func checkTail(
	path string, data []byte, written int, found segmentScan, info types.SegmentInfo, bound uint64,
) error {
	last := info.BaseIndex + uint64(found.entries) - 1
	if last < bound {
		return &CorruptError{Path: path, Reason: fmt.Sprintf("its entries can be read up to entry %d, and entry %d was "+
			"acknowledged", last, bound)}
	}
	if hasLaterBatch(data, written, found.end) {
		return &CorruptError{Path: path, Reason: fmt.Sprintf("what follows entry %d cannot be read, and later entries can",
			last)}
	}
	if found.entries == 0 {
		return nil
	}
	header := data[:fileHeaderBytes]
	if binary.LittleEndian.Uint64(header[8:]) != info.BaseIndex || binary.LittleEndian.Uint64(header[16:]) != info.ID ||
		binary.LittleEndian.Uint64(header[24:]) != info.Codec {
		return &CorruptError{Path: path, Reason: "its header is that of another segment"}
	}
	return nil
}

// dropTornWrite zeroes what follows the complete batches. raft-wal would leave it there, and take the parts that later
// appends do not overwrite for entries.
func dropTornWrite(c Config, path string, written int, found segmentScan) error {
	torn := written - found.end
	if torn <= 0 {
		return nil
	}
	c.Logger.Warn("dropped a write at the end of the log that a crash had interrupted; it was not acknowledged",
		"file", path, "offset", found.end, "bytes", torn)
	if err := overwriteWithZeros(path, int64(found.end), torn); err != nil {
		return fmt.Errorf("repair the end of %s: %w", path, err)
	}
	return nil
}

func overwriteWithZeros(path string, offset int64, length int) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(make([]byte, length), offset)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// blockBytes is how much of a file is read at a time to find the end of what was written to it.
const blockBytes = 256 << 10

// readSegment also returns how much of the file there is before the zeros at its end. They are most of a segment, and
// go through a small buffer: their part of data stays memory that the process has not touched, which a start of a
// server would otherwise spend most of its page faults on.
func readSegment(path string) (data []byte, written int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	stat, err := file.Stat()
	if err == nil {
		written, err = writtenBytes(file, stat.Size())
	}
	if err == nil {
		data = make([]byte, stat.Size())
		_, err = io.ReadFull(io.NewSectionReader(file, 0, int64(written)), data[:written])
	}
	return data, written, errors.Join(err, file.Close())
}

// writtenBytes reads backwards.
func writtenBytes(file io.ReaderAt, size int64) (int, error) {
	buffer := make([]byte, min(size, blockBytes))
	for end := size; end > 0; {
		block := buffer[:min(end, blockBytes)]
		begin := end - int64(len(block))
		if _, err := file.ReadAt(block, begin); err != nil {
			return 0, err
		}
		if n := lengthBeforeZeros(block); n > 0 {
			return int(begin) + n, nil
		}
		end = begin
	}
	return 0, nil
}

func lengthBeforeZeros(data []byte) int {
	var zeros [4096]byte
	n := len(data)
	for n >= len(zeros) && bytes.Equal(data[n-len(zeros):n], zeros[:]) {
		n -= len(zeros)
	}
	for n > 0 && data[n-1] == 0 {
		n--
	}
	return n
}

// completeRotation records that the last segment is complete, and the one after it. A crash between the last write to a
// segment and this step leaves a segment that raft-wal opens, but never appends to.
func completeRotation(state StateStore, persisted types.PersistentState, found segmentScan) error {
	tail := &persisted.Segments[len(persisted.Segments)-1]
	tail.SealTime = time.Now()
	tail.MaxIndex = tail.BaseIndex + uint64(found.entries) - 1
	tail.IndexStart = uint64(found.indexAt)
	next := tail.MaxIndex + 1
	persisted.Segments = append(persisted.Segments, types.SegmentInfo{
		ID: persisted.NextSegmentID, BaseIndex: next, MinIndex: next, Codec: tail.Codec, SizeLimit: tail.SizeLimit,
		CreateTime: tail.SealTime,
	})
	persisted.NextSegmentID++
	return saveState(state, persisted)
}
