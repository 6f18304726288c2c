package walstore

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft-wal/segment"
)

// The layout of a segment file of raft-wal: a header, then frames. A frame has a header of eight bytes (type, three
// zeros, then a length or, in a commit frame, a checksum) and a content that is padded to eight bytes. An append writes
// one batch: an entry frame for each entry, an index frame if the batch completes the segment, and a commit frame with
// the CRC-32C of the batch. The first batch includes the header of the file.
const (
	fileHeaderBytes  = 32
	frameHeaderBytes = 8
)

// searchBytes bounds the work of hasLaterBatch. Content made for the purpose could otherwise make it quadratic.
const searchBytes = 1 << 30

// batch is one complete append.
type batch struct {
	// end is the offset after it; if it is not complete, how far it was read.
	end int
	// entries is the number of entries in it.
	entries int
	// indexAt is the offset of the index within its frame; 0 if the batch does not complete the segment.
	indexAt int
}

// readBatch reads the batch that begins at an offset, and whose first frame is at another. It reports whether the batch
// is complete and its checksum matches.
func readBatch(data []byte, begin, frame int) (b batch, ok bool) {
	for b.end = frame; b.end+frameHeaderBytes <= len(data); {
		head := data[b.end : b.end+frameHeaderBytes]
		number := binary.LittleEndian.Uint32(head[4:])
		switch binary.LittleEndian.Uint32(head) { // the type, and three bytes that are zero
		case uint32(segment.FrameEntry):
			b.entries++
		case uint32(segment.FrameIndex):
			b.indexAt = b.end + frameHeaderBytes
		case uint32(segment.FrameCommit):
			sum := crc32.Checksum(data[begin:b.end], castagnoli)
			b.end += frameHeaderBytes
			return b, b.entries+b.indexAt > 0 && sum == number
		default:
			return b, false
		}
		padded := (int(number) + frameHeaderBytes - 1) / frameHeaderBytes * frameHeaderBytes
		b.end += frameHeaderBytes + padded
	}
	return b, false
}

type segmentScan struct {
	// entries is the number of entries in the complete batches at its beginning, end the offset after them.
	entries, end int
	// indexAt is the offset of the index if the segment is complete, otherwise 0.
	indexAt int
}

func scanSegment(data []byte) (s segmentScan) {
	begin, frame := 0, fileHeaderBytes
	for s.indexAt == 0 {
		b, ok := readBatch(data, begin, frame)
		if !ok {
			break
		}
		s.entries, s.end, s.indexAt = s.entries+b.entries, b.end, b.indexAt
		begin, frame = b.end, b.end
	}
	return s
}

// hasLaterBatch reports whether a complete batch begins anywhere between from and written, where the zeros at the end
// of data begin, or cannot be ruled out. An append begins only after the one before it was synced, so everything before
// such a batch was acknowledged, and is damaged if it cannot be read.
func hasLaterBatch(data []byte, written, from int) bool {
	left := searchBytes
	last := min(written-1, len(data)-frameHeaderBytes) // a frame does not begin with a zero
	for at := max(from, fileHeaderBytes) + frameHeaderBytes; at <= last; at += frameHeaderBytes {
		if data[at] != segment.FrameEntry {
			continue
		}
		b, ok := readBatch(data, at, at)
		if left -= min(b.end, len(data)) - at; ok || left < 0 {
			return true
		}
	}
	return false
}
