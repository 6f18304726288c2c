package walstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// codecID names the format of an entry within a segment.
const codecID = wal.FirstExternalCodecID + 'q'

// headBytes is the size of what precedes the extensions and the data of an entry: index, term, time, type, and the
// length of the extensions.
const headBytes = 8 + 8 + 8 + 1 + 4

// unsetTime stands for the zero time.
const unsetTime = math.MinInt64

// errNotAnEntry says that the stored bytes are not an encoded entry.
var errNotAnEntry = errors.New("the stored bytes are not a log entry")

// entryCodec encodes entries. The codec of raft-wal panics on some damaged entries; this one returns an error.
type entryCodec struct{}

// ID identifies the format in the segment files.
func (entryCodec) ID() uint64 { return codecID }

// Encode writes an entry.
func (entryCodec) Encode(entry *raft.Log, w io.Writer) error {
	if buffer, ok := w.(*bytes.Buffer); ok {
		buffer.Grow(headBytes + len(entry.Extensions) + len(entry.Data))
	}
	at := int64(unsetTime)
	if !entry.AppendedAt.IsZero() {
		at = entry.AppendedAt.UnixNano()
	}
	head := make([]byte, 0, headBytes)
	head = binary.BigEndian.AppendUint64(head, entry.Index)
	head = binary.BigEndian.AppendUint64(head, entry.Term)
	head = binary.BigEndian.AppendUint64(head, uint64(at))
	head = append(head, byte(entry.Type))
	head = binary.BigEndian.AppendUint32(head, uint32(len(entry.Extensions)))
	for _, part := range [][]byte{head, entry.Extensions, entry.Data} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads an entry, which shares no memory with raw.
func (entryCodec) Decode(raw []byte, entry *raft.Log) error {
	if len(raw) < headBytes {
		return errNotAnEntry
	}
	extensions := uint64(binary.BigEndian.Uint32(raw[25:]))
	if extensions > uint64(len(raw)-headBytes) {
		return errNotAnEntry
	}
	*entry = raft.Log{
		Index: binary.BigEndian.Uint64(raw),
		Term:  binary.BigEndian.Uint64(raw[8:]),
		Type:  raft.LogType(raw[24]),
	}
	if at := int64(binary.BigEndian.Uint64(raw[16:])); at != unsetTime {
		entry.AppendedAt = time.Unix(0, at)
	}
	content := bytes.Clone(raw[headBytes:])
	if extensions > 0 {
		entry.Extensions = content[:extensions:extensions]
	}
	if uint64(len(content)) > extensions {
		entry.Data = content[extensions:]
	}
	return nil
}
