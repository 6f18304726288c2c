package wirelimit

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Binary scans a request in protobuf's binary form.
func (c *Checker) Binary(data []byte, d protoreflect.MessageDescriptor) (Usage, error) {
	s, m, err := c.startScan(d.FullName())
	if err == nil {
		err = s.scanMessage(m, data, false)
	}
	if err != nil {
		return Usage{}, err
	}
	s.usage.Plain = !s.odd
	return s.usage, nil
}

// scanMessage with lenient set enforces only the bounds of the whole request.
func (s *scan) scanMessage(m *message, data []byte, lenient bool) error {
	base := len(s.counts)
	for range m.bounded {
		s.counts = append(s.counts, 0)
	}
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
		f := m.fieldOf(number)
		if f == nil {
			s.odd = true
			if err := s.addUsage(0, int64(n)); err != nil {
				return err
			}
			continue
		}
		if err := s.scanField(f, kind, value, base, lenient); err != nil {
			return err
		}
	}
	s.counts = s.counts[:base] // after an error they are not read
	return nil
}

func (s *scan) scanField(f *field, kind protowire.Type, value []byte, base int, lenient bool) error {
	if kind != protowire.BytesType {
		return s.scanScalar(f, base, lenient)
	}
	content, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return errMalformed
	}
	switch {
	case f.isMap:
		n, err := s.countElements(f, base, lenient)
		if err != nil {
			return err
		}
		return s.scanPair(f, content, n, lenient)
	case f.message != nil:
		return s.scanNested(f, content, base, lenient)
	case f.isList && f.kind != protoreflect.StringKind && f.kind != protoreflect.BytesKind:
		return s.scanPacked(f, content, base, lenient)
	case f.isList:
		if _, err := s.countElements(f, base, lenient); err != nil {
			return err
		}
	}
	s.checkText(f.kind, content)
	return s.addUsage(0, allocatedSize(int64(len(content))))
}

// checkText exists because generated decoders accept text that is not UTF-8.
func (s *scan) checkText(kind protoreflect.Kind, content []byte) {
	s.odd = s.odd || kind == protoreflect.StringKind && !utf8.Valid(content)
}

func (s *scan) countElements(f *field, base int, lenient bool) (int, error) {
	s.counts[base+f.slot]++
	n := s.counts[base+f.slot]
	return n, s.addElement(f, n, lenient)
}

func (s *scan) scanScalar(f *field, base int, lenient bool) error {
	switch {
	case f.isList && f.message == nil:
		_, err := s.countElements(f, base, lenient)
		return err
	case f.presence:
		return s.addUsage(0, pointerSize)
	}
	return nil
}

func (s *scan) scanPacked(f *field, content []byte, base int, lenient bool) error {
	for len(content) > 0 {
		n := scalarWidth(f.kind)
		if n == 0 {
			_, n = protowire.ConsumeVarint(content)
		}
		if n < 0 || n > len(content) {
			return errMalformed
		}
		content = content[n:]
		if _, err := s.countElements(f, base, lenient); err != nil {
			return err
		}
	}
	return nil
}

// scalarWidth is 0 for varints.
func scalarWidth(kind protoreflect.Kind) int {
	switch kind { //nolint:exhaustive // all others are varints or have a length
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return 8
	}
	return 0
}

func (s *scan) scanNested(f *field, content []byte, base int, lenient bool) error {
	at := step{field: f}
	if f.isList {
		n, err := s.countElements(f, base, lenient)
		if err != nil {
			return err
		}
		at.index = n - 1
	} else if err := s.addUsage(1, 0); err != nil {
		return err
	}
	if err := s.addUsage(0, f.message.size); err != nil {
		return err
	}
	if err := s.enterMessage(at); err != nil {
		return err
	}
	defer s.leaveMessage()
	return s.scanMessage(f.message, content, lenient || f.lenient)
}

// scanPair scans a map entry: field 1 is the key, field 2 the value.
func (s *scan) scanPair(f *field, content []byte, n int, lenient bool) error {
	at := step{field: f, index: n - 1}
	if f.message != nil {
		if err := s.addUsage(0, f.message.size); err != nil {
			return err
		}
	}
	for previous := protowire.Number(0); len(content) > 0; {
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
		// Generated decoders do not look at the types of keys and values, and add numbers that come twice.
		s.odd = s.odd || number <= previous || number > 2 ||
			number == 1 && kind != protowire.BytesType || number == 2 && kind != f.wire
		previous = number
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
		s.checkText(protoreflect.StringKind, inside) // bytes as values only cost time
		if number == 1 {
			at.key = inside[:min(len(inside), longestKey+1)]
		}
		if err := s.addUsage(0, allocatedSize(int64(len(inside)))); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) pairValue(f *field, at step, content []byte, lenient bool) error {
	if err := s.enterMessage(at); err != nil {
		return err
	}
	defer s.leaveMessage()
	return s.scanMessage(f.message, content, lenient || f.lenient)
}
