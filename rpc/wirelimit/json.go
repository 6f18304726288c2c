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
	s, m, err := c.startScan(d.FullName())
	if err != nil {
		return Usage{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	text := jsonScan{scan: s, decoder: decoder}
	if err = text.scanValue(&field{message: m, kind: protoreflect.MessageKind}, false); err != nil {
		return Usage{}, err
	}
	return s.usage, nil
}

// jsonScan reads one token after the other.
type jsonScan struct {
	*scan

	decoder *json.Decoder
}

func (s jsonScan) nextToken() (json.Token, error) {
	token, err := s.decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	return token, nil
}

// scanValue takes a message, or a value that the schema does not divide further.
func (s jsonScan) scanValue(f *field, lenient bool) error {
	token, err := s.nextToken()
	if err != nil {
		return err
	}
	open, composite := token.(json.Delim)
	if !composite {
		text, _ := token.(string)
		return s.addUsage(0, allocatedSize(int64(len(text))))
	}
	if open == '{' && f != nil && f.message != nil && !f.message.opaque {
		return s.scanObject(f.message, lenient)
	}
	return s.skipValue(open)
}

// scanObject scans the fields of a message behind its opening brace.
func (s jsonScan) scanObject(m *message, lenient bool) error {
	base := len(s.counts)
	for range m.bounded {
		s.counts = append(s.counts, 0)
	}
	defer func() { s.counts = s.counts[:base] }()
	for s.decoder.More() {
		name, err := s.nextToken()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		if err := s.scanMember(m.names[key], base, lenient); err != nil {
			return err
		}
	}
	_, err := s.nextToken()
	return err
}

// scanMember takes a nil f for a member that is not a field.
func (s jsonScan) scanMember(f *field, base int, lenient bool) error {
	switch {
	case f == nil:
		return s.scanWithin(step{}, func() error { return s.scanValue(nil, lenient) })
	case f.isList:
		return s.scanComposite(f, '[', func() error { return s.scanList(f, base, lenient) })
	case f.isMap:
		return s.scanComposite(f, '{', func() error { return s.scanPairs(f, base, lenient) })
	case f.message != nil:
		if err := s.addUsage(1, f.message.size); err != nil {
			return err
		}
	case f.presence:
		if err := s.addUsage(0, pointerSize); err != nil {
			return err
		}
	}
	return s.scanWithin(step{field: f}, func() error { return s.scanValue(f, lenient || f.lenient) })
}

// scanComposite calls inside for a list or a map, and passes over anything else.
func (s jsonScan) scanComposite(f *field, want json.Delim, inside func() error) error {
	token, err := s.nextToken()
	if err != nil {
		return err
	}
	open, composite := token.(json.Delim)
	switch {
	case !composite:
		return nil // null, or what the decoder refuses
	case open != want:
		return s.scanWithin(step{field: f}, func() error { return s.skipValue(open) })
	}
	if err := inside(); err != nil {
		return err
	}
	_, err = s.nextToken()
	return err
}

// scanList scans the elements of a list behind its opening bracket.
func (s jsonScan) scanList(f *field, base int, lenient bool) error {
	for s.decoder.More() {
		n, err := s.countElements(f, base, lenient)
		if err != nil {
			return err
		}
		if err := s.scanSingle(f, step{field: f, index: n - 1}, lenient); err != nil {
			return err
		}
	}
	return nil
}

// scanPairs scans the members of a map behind its opening brace.
func (s jsonScan) scanPairs(f *field, base int, lenient bool) error {
	for s.decoder.More() {
		if _, err := s.countElements(f, base, lenient); err != nil {
			return err
		}
		name, err := s.nextToken()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		if err := s.addUsage(0, allocatedSize(int64(len(key)))); err != nil {
			return err
		}
		if err := s.scanSingle(f, step{field: f, key: []byte(key[:min(len(key), longestKey+1)])}, lenient); err != nil {
			return err
		}
	}
	return nil
}

func (s jsonScan) scanSingle(f *field, at step, lenient bool) error {
	if f.message != nil {
		if err := s.addUsage(0, f.message.size); err != nil {
			return err
		}
	}
	return s.scanWithin(at, func() error { return s.scanValue(f, lenient || f.lenient) })
}

// skipValue starts behind the opening brace or bracket of a value that the schema does not divide.
func (s jsonScan) skipValue(open json.Delim) error {
	for s.decoder.More() {
		if open == '{' {
			if _, err := s.nextToken(); err != nil {
				return err
			}
		}
		if err := s.addUsage(1, pointerSize); err != nil {
			return err
		}
		if err := s.scanWithin(step{}, func() error { return s.scanValue(nil, true) }); err != nil {
			return err
		}
	}
	_, err := s.nextToken()
	return err
}

func (s jsonScan) scanWithin(at step, inside func() error) error {
	if err := s.enterMessage(at); err != nil {
		return err
	}
	defer s.leaveMessage()
	return inside()
}
