package wirelimit

import (
	"fmt"
	"reflect"
	"strings"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Sizes of Go values in bytes, on 64-bit machines.
const (
	pointerSize = 8
	stringSize  = 16
	sliceSize   = 24
	// mapSize is a map with its first group of eight slots, without the slots.
	mapSize = 64
	// mapGroup is how many slots the first group of a map has.
	mapGroup = 8
	// unknownMessage stands for a message whose Go type is not linked in.
	unknownMessage = 512
)

type message struct {
	fields map[protowire.Number]*field
	names  map[string]*field
	// low are the fields with small numbers again, by number: a map is most of the time of a scan.
	low [32]*field
	// bounded is how many lists and maps it has.
	bounded int
	// size is the memory of an empty one.
	size int64
	// opaque is true if its JSON form is not an object of its fields.
	opaque bool
}

type field struct {
	name          string
	isList, isMap bool
	// slot is the place of its counter among those of its message, for lists and maps.
	slot int
	// maxItems is how many elements a list or a map may have; 0 is any number.
	maxItems int
	// lenient is true if the rules of the messages in it are not for the request as a whole, so that each of them can be
	// refused alone: only the bounds of the whole request hold inside.
	lenient bool
	kind    protoreflect.Kind
	// wire is how values of the kind are written.
	wire protowire.Type
	// message is the type of the field, of the elements of a list, or of the values of a map; nil for scalars.
	message *message
	// value is the memory of one scalar, or of the reference to a message.
	value int64
	// presence is true if a scalar is kept by reference.
	presence bool
}

// elementSize is the memory that the nth element of a list or map takes, without what its bytes and messages take.
func (f *field) elementSize(n int) int64 {
	if !f.isMap {
		return 2 * f.value // a slice that grows has up to twice as many places
	}
	slot := f.value + stringSize
	switch {
	case n == 1:
		return mapSize + mapGroup*slot
	case n <= mapGroup:
		return 0
	}
	return 3 * slot
}

// New compiles the bounds of messages and of everything in them.
func New(limits Limits, messages ...protoreflect.MessageDescriptor) (*Checker, error) {
	c := &Checker{limits: limits, messages: map[protoreflect.FullName]*message{}}
	for _, d := range messages {
		if _, err := c.learnMessage(d); err != nil {
			return nil, fmt.Errorf("reading the bounds of %s: %w", d.FullName(), err)
		}
	}
	return c, nil
}

func (c *Checker) learnMessage(d protoreflect.MessageDescriptor) (*message, error) {
	if known, found := c.messages[d.FullName()]; found {
		return known, nil
	}
	m := &message{
		fields: map[protowire.Number]*field{}, names: map[string]*field{}, size: goSize(d),
		opaque: strings.HasPrefix(string(d.FullName()), "google.protobuf."),
	}
	c.messages[d.FullName()] = m // before its fields: it may be nested in itself
	for i := range d.Fields().Len() {
		described := d.Fields().Get(i)
		f, err := c.learnField(described)
		if err != nil {
			return nil, err
		}
		if f.isList || f.isMap {
			f.slot = m.bounded
			m.bounded++
		}
		m.fields[described.Number()] = f
		if int(described.Number()) < len(m.low) {
			m.low[described.Number()] = f
		}
		m.names[described.JSONName()], m.names[described.TextName()] = f, f
	}
	return m, nil
}

// fieldOf returns nil if there is no such field.
func (m *message) fieldOf(number protowire.Number) *field {
	if int(number) < len(m.low) {
		return m.low[number]
	}
	return m.fields[number]
}

func (c *Checker) learnField(d protoreflect.FieldDescriptor) (*field, error) {
	f := &field{name: d.TextName(), isList: d.IsList(), isMap: d.IsMap(), kind: d.Kind(), presence: d.HasPresence()}
	rules, err := protovalidate.ResolveFieldRules(d)
	if err != nil {
		return nil, err
	}
	element, elements := d, (*validatepb.FieldRules)(nil)
	switch {
	case f.isMap:
		element, elements = d.MapValue(), rules.GetMap().GetValues()
		f.kind, f.maxItems = element.Kind(), int(rules.GetMap().GetMaxPairs())
	case f.isList:
		elements, f.maxItems = rules.GetRepeated().GetItems(), int(rules.GetRepeated().GetMaxItems())
	}
	always := validatepb.Ignore_IGNORE_ALWAYS
	if f.lenient = rules.GetIgnore() == always || elements.GetIgnore() == always; rules.GetIgnore() == always {
		f.maxItems = 0
	}
	f.value, f.wire = scalarSize(f.kind), wireType(f.kind)
	if element.Message() != nil {
		f.message, err = c.learnMessage(element.Message())
	}
	return f, err
}

// wireType is how a value is written outside of a packed list.
func wireType(kind protoreflect.Kind) protowire.Type {
	switch kind { //nolint:exhaustive // all others are varints
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	}
	switch scalarWidth(kind) {
	case 4:
		return protowire.Fixed32Type
	case 8:
		return protowire.Fixed64Type
	}
	return protowire.VarintType
}

func scalarSize(kind protoreflect.Kind) int64 {
	switch kind { //nolint:exhaustive // all others fit into a word
	case protoreflect.StringKind:
		return stringSize
	case protoreflect.BytesKind:
		return sliceSize
	}
	return pointerSize
}

func goSize(d protoreflect.MessageDescriptor) int64 {
	if d.IsMapEntry() {
		return 0
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return unknownMessage
	}
	t := reflect.TypeOf(kind.Zero().Interface())
	if t.Kind() != reflect.Pointer {
		return unknownMessage
	}
	return allocatedSize(int64(t.Elem().Size()))
}

// allocatedSize is what the allocator takes for n bytes, at most: its classes are an eighth apart.
func allocatedSize(n int64) int64 { return (n + n/8 + 15) &^ 15 }
