package wirelimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// JSON scans a request in protobuf's JSON form.
func (c *Checker) JSON(data []byte, d protoreflect.MessageDescriptor) (Usage, error) {
	s, m, err := c.start(d.FullName())
	if err != nil {
		return Usage{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	text := jsonScan{scan: s, decoder: decoder}
	if err = text.value(&field{message: m, kind: protoreflect.MessageKind}, false); err != nil {
		return Usage{}, err
	}
	return s.usage, nil
}

// jsonScan reads one token after the other.
type jsonScan struct {
	*scan

	decoder *json.Decoder
}

func (s jsonScan) token() (json.Token, error) {
	token, err := s.decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	return token, nil
}

// value scans what stands for a message, or for anything else that the schema does not divide further.
func (s jsonScan) value(f *field, lenient bool) error {
	token, err := s.token()
	if err != nil {
		return err
	}
	open, composite := token.(json.Delim)
	if !composite {
		text, _ := token.(string)
		return s.add(0, allocated(int64(len(text))))
	}
	if open == '{' && f != nil && f.message != nil && !f.message.opaque {
		return s.object(f.message, lenient)
	}
	return s.skip(open)
}

// object scans the fields of a message behind its opening brace.
func (s jsonScan) object(m *message, lenient bool) error {
	base := len(s.counts)
	for range m.bounded {
		s.counts = append(s.counts, 0)
	}
	defer func() { s.counts = s.counts[:base] }()
	for s.decoder.More() {
		name, err := s.token()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		if err := s.member(m.names[key], base, lenient); err != nil {
			return err
		}
	}
	_, err := s.token()
	return err
}

// member scans the value of one field; f is nil if the message has no such field.
func (s jsonScan) member(f *field, base int, lenient bool) error {
	switch {
	case f == nil:
		return s.within(step{}, func() error { return s.value(nil, lenient) })
	case f.isList:
		return s.composite(f, '[', func() error { return s.list(f, base, lenient) })
	case f.isMap:
		return s.composite(f, '{', func() error { return s.pairs(f, base, lenient) })
	case f.message != nil:
		if err := s.add(1, f.message.size); err != nil {
			return err
		}
	case f.presence:
		if err := s.add(0, pointerSize); err != nil {
			return err
		}
	}
	return s.within(step{field: f}, func() error { return s.value(f, lenient || f.lenient) })
}

// composite scans a list or a map with inside, and anything else without.
func (s jsonScan) composite(f *field, want json.Delim, inside func() error) error {
	token, err := s.token()
	if err != nil {
		return err
	}
	open, composite := token.(json.Delim)
	switch {
	case !composite:
		return nil // null, or what the decoder refuses
	case open != want:
		return s.within(step{field: f}, func() error { return s.skip(open) })
	}
	if err := inside(); err != nil {
		return err
	}
	_, err = s.token()
	return err
}

// list scans the elements of a list behind its opening bracket.
func (s jsonScan) list(f *field, base int, lenient bool) error {
	for s.decoder.More() {
		n, err := s.count(f, base, lenient)
		if err != nil {
			return err
		}
		if err := s.single(f, step{field: f, index: n - 1}, lenient); err != nil {
			return err
		}
	}
	return nil
}

// pairs scans the members of a map behind its opening brace.
func (s jsonScan) pairs(f *field, base int, lenient bool) error {
	for s.decoder.More() {
		if _, err := s.count(f, base, lenient); err != nil {
			return err
		}
		name, err := s.token()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		if err := s.add(0, allocated(int64(len(key)))); err != nil {
			return err
		}
		if err := s.single(f, step{field: f, key: key}, lenient); err != nil {
			return err
		}
	}
	return nil
}

// single scans one element of a list or one value of a map.
func (s jsonScan) single(f *field, at step, lenient bool) error {
	if f.message != nil {
		if err := s.add(0, f.message.size); err != nil {
			return err
		}
	}
	return s.within(at, func() error { return s.value(f, lenient || f.lenient) })
}

// skip passes over an object or an array that the schema does not divide, behind its opening.
func (s jsonScan) skip(open json.Delim) error {
	for s.decoder.More() {
		if open == '{' {
			if _, err := s.token(); err != nil {
				return err
			}
		}
		if err := s.add(1, pointerSize); err != nil {
			return err
		}
		if err := s.within(step{}, func() error { return s.value(nil, true) }); err != nil {
			return err
		}
	}
	_, err := s.token()
	return err
}

// within scans one level deeper.
func (s jsonScan) within(at step, inside func() error) error {
	if err := s.enter(at); err != nil {
		return err
	}
	defer s.leave()
	return inside()
}
