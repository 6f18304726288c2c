package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxFields bounds the fields of a message, and maxText the length of a value: memberlist sends up to 512 bytes of
	// metadata, and error texts.
	maxFields = 16
	maxText   = 1024
)

type field struct {
	text   []byte // value of a string or byte string
	number int64
	isText bool
}

// errTooLong is the error for a value longer than any that memberlist sends.
var errTooLong = errors.New("a value is longer than any that members send")

// byteSource yields the bytes of a message in order. It never allocates more than was received.
type byteSource interface {
	readBytes(n int) ([]byte, error)
}

// readFields reads one message in the form that memberlist writes: a msgpack map of strings, numbers, booleans and nil.
// Anything else that memberlist's decoder would accept (arrays, nested values, extensions, duplicate fields) is
// refused.
func readFields(from byteSource) (map[string]field, error) {
	count, err := readMapSize(from)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]field, count)
	for range count {
		name, err := readField(from)
		if err != nil {
			return nil, err
		}
		if _, twice := fields[string(name.text)]; twice || !name.isText {
			return nil, fmt.Errorf("the field %q is duplicated or is not a name", name.text)
		}
		value, err := readField(from)
		if err != nil {
			return nil, err
		}
		fields[string(name.text)] = value
	}
	return fields, nil
}

func readMapSize(from byteSource) (int, error) {
	head, err := from.readBytes(1)
	if err != nil {
		return 0, err
	}
	if head[0]&0xf0 != 0x80 { // a map of at most 15 fields; memberlist's have at most 7
		return 0, fmt.Errorf("a message begins with %#x, which is not a map of fewer than %d fields",
			head[0], maxFields)
	}
	return int(head[0] & 0x0f), nil
}

func readField(from byteSource) (field, error) {
	head, err := from.readBytes(1)
	if err != nil {
		return field{}, err
	}
	switch kind := head[0]; {
	case kind <= 0x7f, kind >= 0xe0:
		return field{number: int64(int8(kind))}, nil
	case kind&0xe0 == 0xa0:
		return readText(from, int(kind&0x1f))
	case kind == 0xc0, kind == 0xc2:
		return field{}, nil
	case kind == 0xc3:
		return field{number: 1}, nil
	case kind == 0xc4, kind == 0xd9, kind == 0xc5, kind == 0xda, kind == 0xc6, kind == 0xdb:
		size, err := readNumber(from, map[byte]int{0xc4: 1, 0xd9: 1, 0xc5: 2, 0xda: 2, 0xc6: 4, 0xdb: 4}[kind])
		if err != nil {
			return field{}, err
		}
		return readText(from, int(min(size, maxText+1)))
	case kind >= 0xcc && kind <= 0xcf: // unsigned
		number, err := readNumber(from, 1<<(kind-0xcc))
		return field{number: int64(min(number, 1<<62))}, err
	case kind >= 0xd0 && kind <= 0xd3: // signed
		bytes := 1 << (kind - 0xd0)
		number, err := readNumber(from, bytes)
		shift := 64 - 8*bytes
		return field{number: int64(number<<shift) >> shift}, err
	default:
		return field{}, fmt.Errorf("a value begins with %#x, which is neither a text nor a number", kind)
	}
}

func readText(from byteSource, size int) (field, error) {
	if size > maxText {
		return field{}, errTooLong
	}
	text, err := from.readBytes(size)
	return field{text: text, isText: true}, err
}

func readNumber(from byteSource, size int) (uint64, error) {
	var number [8]byte
	text, err := from.readBytes(size)
	copy(number[8-len(text):], text)
	return binary.BigEndian.Uint64(number[:]), err
}

type memorySource struct{ rest []byte }

func (m *memorySource) readBytes(n int) ([]byte, error) {
	if n > len(m.rest) {
		return nil, io.ErrUnexpectedEOF
	}
	taken := m.rest[:n]
	m.rest = m.rest[n:]
	return taken, nil
}

// streamSource is a message that is being received. It keeps the bytes read, at most left of them.
type streamSource struct {
	from io.Reader
	kept []byte
	left int
}

func (a *streamSource) readBytes(n int) ([]byte, error) {
	if n > a.left {
		return nil, errTooLong
	}
	at := len(a.kept)
	a.kept = append(a.kept, make([]byte, n)...)
	read, err := io.ReadFull(a.from, a.kept[at:])
	a.kept, a.left = a.kept[:at+read], a.left-read
	return a.kept[at:], err
}
