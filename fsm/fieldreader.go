package fsm

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// fieldReader reads the fields of a message in the order of their numbers, which are below 2,048. It fails for what
// fieldWriter does not write: another order, a field twice, a zero value, a number with needless bytes, a text that is
// not UTF-8. Once it has failed, it finds no field, and all values are zero.
type fieldReader struct {
	data   []byte
	failed bool
}

func (r *fieldReader) failIf(wrong bool) {
	if wrong {
		r.failed, r.data = true, nil
	}
}

func (r *fieldReader) isDone() bool { return !r.failed && len(r.data) == 0 }

// hasField also expects a length before the value of the field.
func (r *fieldReader) hasField(number protowire.Number) bool {
	return r.hasTag(number, protowire.BytesType)
}

func (r *fieldReader) hasTag(number protowire.Number, kind protowire.Type) bool {
	if number < 16 {
		return len(r.data) > 0 && r.data[0] == byte(number)<<3|byte(kind)
	}
	return len(r.data) > 1 && r.data[0] == byte(number)<<3|byte(kind)|1<<7 && r.data[1] == byte(number>>4)
}

// skipTag expects that hasTag has seen the tag.
func (r *fieldReader) skipTag() {
	size := 1
	if len(r.data) > 1 && r.data[0] >= 1<<7 {
		size = 2
	}
	r.data = r.data[size:]
}

// readNumber is 0 if the next field is another.
func (r *fieldReader) readNumber(number protowire.Number) uint64 {
	if !r.hasTag(number, protowire.VarintType) {
		return 0
	}
	r.skipTag()
	value := r.readVarint()
	r.failIf(value == 0)
	return value
}

// readVarint fails for one that is longer than necessary.
func (r *fieldReader) readVarint() uint64 {
	if len(r.data) > 0 && r.data[0] < 1<<7 {
		value := uint64(r.data[0])
		r.data = r.data[1:]
		return value
	}
	value, n := protowire.ConsumeVarint(r.data)
	if n < 0 || r.data[n-1] == 0 {
		r.failIf(true)
		return 0
	}
	r.data = r.data[n:]
	return value
}

// readText reads a text; nil if the next field is another. The text is a part of the entry and must be copied.
func (r *fieldReader) readText(number protowire.Number) []byte {
	if !r.hasField(number) {
		return nil
	}
	text := r.readElement()
	r.failIf(len(text) == 0)
	return text
}

// readElement is readText for an element of a list, which may be empty. There must be one.
func (r *fieldReader) readElement() []byte {
	text := r.readContent()
	r.failIf(!utf8.Valid(text))
	return text
}

func (r *fieldReader) readContent() []byte {
	if len(r.data) == 0 {
		return nil
	}
	r.skipTag()
	length := r.readVarint()
	if length > uint64(len(r.data)) {
		r.failIf(true)
		return nil
	}
	content := r.data[:length]
	r.data = r.data[length:]
	return content
}

// enterMessage continues with the fields of the message in the next field. leaveMessage must follow with the result.
func (r *fieldReader) enterMessage() (rest []byte) {
	content := r.readContent()
	rest, r.data = r.data, content
	return rest
}

// leaveMessage continues behind a message. It fails if fields of it are left.
func (r *fieldReader) leaveMessage(rest []byte) {
	r.failIf(len(r.data) > 0)
	if !r.failed {
		r.data = rest
	}
}

func (r *fieldReader) countMessages(number protowire.Number) int {
	ahead, n := *r, 0
	for ahead.hasField(number) {
		ahead.readContent()
		n++
	}
	return n
}

// nameCache keeps one copy of each frequent name, of trees, nodes and resources above all: most are in every command,
// and were a third of the allocations of a replica. It keeps at most cachedNames names of cachedLength bytes, whatever
// the entries have, and has no influence on what is decoded.
type nameCache [cachedNames]string

const (
	cachedNames  = 1 << 10
	cachedLength = 128
)

func (n *nameCache) find(text []byte) string {
	if len(text) == 0 || len(text) > cachedLength {
		return string(text)
	}
	slot := &n[hashBytes(text)%cachedNames]
	if *slot != string(text) { // compares without a copy
		*slot = string(text)
	}
	return *slot
}

// hashBytes is FNV-1a.
func hashBytes(text []byte) uint32 {
	hash := uint32(2166136261)
	for _, b := range text {
		hash = (hash ^ uint32(b)) * 16777619
	}
	return hash
}
