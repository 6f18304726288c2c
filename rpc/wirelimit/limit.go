// Package wirelimit checks the encoded form of a request against the bounds of its schema before a message is built
// from it.
//
// A list of empty messages takes two bytes for each on the wire and some hundred in memory, and rules of a schema are
// checked on the message, when the memory is spent already. The scan here reads the encoded bytes once, builds nothing,
// and stops at the first bound that is exceeded. It takes the bounds from the descriptors: repeated.max_items and
// map.max_pairs of protovalidate, so that a new field is bounded on the day it is added. Everything else that the
// schema demands (patterns, lengths, ranges) costs no more than the bytes that were sent and is left to the validator.
package wirelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits bound one request as a whole, beside the bounds of its fields.
type Limits struct {
	// Elements is how many list entries, map entries and messages a request may have.
	Elements int64
	// Size is how many bytes of memory the decoded request may take, by the estimate of the scan.
	Size int64
	// Depth is how deep messages and JSON values may be nested.
	Depth int
}

// Usage is what a request comes to.
type Usage struct {
	// Elements are its list entries, map entries and messages.
	Elements int64
	// Size estimates the bytes of memory of the decoded message. It is rather too large than too small.
	Size int64
	// Plain is true if a binary request has nothing unusual that decoders might treat differently: unknown fields, map
	// entries of other types, texts that are not UTF-8.
	Plain bool
}

// Error names the bound that a request exceeds.
type Error struct {
	// Field is the path of the field, as protovalidate writes it; empty if the request as a whole is too large.
	Field string
	// Text names the bound.
	Text string
}

// Error gives the field and the bound.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Text
	}
	return e.Field + ": " + e.Text
}

// errMalformed means that the bytes are not valid in the encoding.
var errMalformed = errors.New("the body is not a valid protobuf message")

// longestKey is how much of a map's key an error shows, in bytes.
const longestKey = 64

type step struct {
	field *field
	index int
	// key is a part of the request.
	key []byte
}

type scan struct {
	limits Limits
	usage  Usage
	odd    bool // the request is not plain
	path   []step
	// counts are the elements of each bounded field of the messages around the current position, innermost last.
	counts []int
}

// addUsage counts elements and the memory that they take.
func (s *scan) addUsage(elements, size int64) error {
	s.usage.Elements += elements
	s.usage.Size += size
	switch {
	case s.usage.Elements > s.limits.Elements:
		return &Error{Text: fmt.Sprintf(
			"the request has more than %d elements (list entries, map entries and messages); split it "+
				"into several calls",
			s.limits.Elements)}
	case s.usage.Size > s.limits.Size:
		return &Error{Text: fmt.Sprintf(
			"the request takes more than %d bytes of memory when it is decoded; split it into several calls",
			s.limits.Size)}
	}
	return nil
}

// addElement counts the nth element of a list or map, and compares with the bound of the field.
func (s *scan) addElement(f *field, n int, lenient bool) error {
	if !lenient && f.maxItems > 0 && n > f.maxItems {
		text := fmt.Sprintf("must contain no more than %d items", f.maxItems)
		if f.isMap {
			text = fmt.Sprintf("must contain no more than %d pairs", f.maxItems)
		}
		return &Error{Field: s.fieldPath(f), Text: text}
	}
	return s.addUsage(1, f.elementSize(n))
}

func (s *scan) enterMessage(at step) error {
	if len(s.path) >= s.limits.Depth {
		return &Error{Text: fmt.Sprintf("the request is nested deeper than %d levels", s.limits.Depth)}
	}
	s.path = append(s.path, at)
	return nil
}

func (s *scan) leaveMessage() { s.path = s.path[:len(s.path)-1] }

func (s *scan) fieldPath(last *field) string {
	var b strings.Builder
	for _, at := range s.path {
		if at.field == nil {
			continue
		}
		b.WriteString(at.field.name)
		switch {
		case at.field.isMap:
			b.WriteString("[" + strconv.Quote(shortenKey(string(at.key))) + "]")
		case at.field.isList:
			b.WriteString("[" + strconv.Itoa(at.index) + "]")
		}
		b.WriteByte('.')
	}
	b.WriteString(last.name)
	return b.String()
}

func shortenKey(key string) string {
	if len(key) <= longestKey {
		return key
	}
	return strings.ToValidUTF8(key[:longestKey], "") + "…"
}

// Checker has the bounds of a set of message types. It is safe for concurrent use.
type Checker struct {
	limits   Limits
	messages map[protoreflect.FullName]*message
}

func (c *Checker) startScan(name protoreflect.FullName) (*scan, *message, error) {
	m, known := c.messages[name]
	if !known {
		return nil, nil, fmt.Errorf("the bounds of %s are not known; this is a bug of the server", name)
	}
	s := &scan{limits: c.limits}
	return s, m, s.addUsage(1, m.size)
}
