package wirelimit

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Binary scans a request in protobuf's binary form.
func (c *Checker) Binary(data []byte, d protoreflect.MessageDescriptor) (Usage, error) {
	s, m, err := c.start(d.FullName())
	if err == nil {
		err = s.message(m, data, false)
	}
	if err != nil {
		return Usage{}, err
	}
	return s.usage, nil
}

// message scans the fields of a message. A lenient one keeps only to the bounds of the whole request.
func (s *scan) message(m *message, data []byte, lenient bool) error {
	base := len(s.counts)
	for range m.bounded {
		s.counts = append(s.counts, 0)
	}
	defer func() { s.counts = s.counts[:base] }()
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return errMalformed
		}
		value := data[:n]
		data = data[n:]
		f, known := m.fields[number]
		if !known {
			if err := s.add(0, int64(n)); err != nil {
				return err
			}
			continue
		}
		if err := s.field(f, kind, value, base, lenient); err != nil {
			return err
		}
	}
	return nil
}

// field scans one occurrence of a field.
func (s *scan) field(f *field, kind protowire.Type, value []byte, base int, lenient bool) error {
	if kind != protowire.BytesType {
		return s.scalar(f, base, lenient)
	}
	content, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return errMalformed
	}
	switch {
	case f.isMap:
		n, err := s.count(f, base, lenient)
		if err != nil {
			return err
		}
		return s.pair(f, content, n, lenient)
	case f.message != nil:
		return s.nested(f, content, base, lenient)
	case f.isList && f.kind != protoreflect.StringKind && f.kind != protoreflect.BytesKind:
		return s.packed(f, content, base, lenient)
	case f.isList:
		if _, err := s.count(f, base, lenient); err != nil {
			return err
		}
	}
	return s.add(0, allocated(int64(len(content))))
}

// count notes another element of a list or a map, and answers how many there are.
func (s *scan) count(f *field, base int, lenient bool) (int, error) {
	s.counts[base+f.slot]++
	n := s.counts[base+f.slot]
	return n, s.element(f, n, lenient)
}

// scalar counts a value of a fixed width or a varint.
func (s *scan) scalar(f *field, base int, lenient bool) error {
	switch {
	case f.isList && f.message == nil:
		_, err := s.count(f, base, lenient)
		return err
	case f.presence:
		return s.add(0, pointerSize)
	}
	return nil
}

// packed counts the values of a list of scalars that are written one behind the other.
func (s *scan) packed(f *field, content []byte, base int, lenient bool) error {
	for len(content) > 0 {
		n := scalarWidth(f.kind)
		if n == 0 {
			_, n = protowire.ConsumeVarint(content)
		}
		if n < 0 || n > len(content) {
			return errMalformed
		}
		content = content[n:]
		if _, err := s.count(f, base, lenient); err != nil {
			return err
		}
	}
	return nil
}

// scalarWidth is the width of a value on the wire, 0 for varints.
func scalarWidth(kind protoreflect.Kind) int {
	switch kind { //nolint:exhaustive // all others are varints or have a length
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return 8
	}
	return 0
}

// nested scans a message in a message.
func (s *scan) nested(f *field, content []byte, base int, lenient bool) error {
	at := step{field: f}
	if f.isList {
		n, err := s.count(f, base, lenient)
		if err != nil {
			return err
		}
		at.index = n - 1
	} else if err := s.add(1, 0); err != nil {
		return err
	}
	if err := s.add(0, f.message.size); err != nil {
		return err
	}
	if err := s.enter(at); err != nil {
		return err
	}
	defer s.leave()
	return s.message(f.message, content, lenient || f.lenient)
}

// pair scans a map entry: field 1 is the key, field 2 the value.
func (s *scan) pair(f *field, content []byte, n int, lenient bool) error {
	at := step{field: f, index: n - 1}
	if f.message != nil {
		if err := s.add(0, f.message.size); err != nil {
			return err
		}
	}
	for len(content) > 0 {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 {
			return errMalformed
		}
		content = content[n:]
		if n = protowire.ConsumeFieldValue(number, kind, content); n < 0 {
			return errMalformed
		}
		value := content[:n]
		content = content[n:]
		if kind != protowire.BytesType {
			continue
		}
		inside, n := protowire.ConsumeBytes(value)
		if n < 0 {
			return errMalformed
		}
		if number == 2 && f.message != nil {
			if err := s.pairValue(f, at, inside, lenient); err != nil {
				return err
			}
			continue
		}
		if number == 1 {
			at.key = string(inside[:min(len(inside), longestKey+1)])
		}
		if err := s.add(0, allocated(int64(len(inside)))); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) pairValue(f *field, at step, content []byte, lenient bool) error {
	if err := s.enter(at); err != nil {
		return err
	}
	defer s.leave()
	return s.message(f.message, content, lenient || f.lenient)
}
