package codec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// generatedRequests are the requests with a generated decoder that the fuzzer tries.
func generatedRequests() []proto.Message {
	return []proto.Message{
		&quoratev1.AllocateRequest{}, &quoratev1.BatchAllocateRequest{}, &quoratev1.RenewRequest{},
		&quoratev1.BatchRenewRequest{}, &quoratev1.ReleaseRequest{}, &quoratev1.BatchReleaseRequest{},
		&quoratev1.ExplainRequest{},
	}
}

func newBinaryCodec(tb testing.TB) binaryCodec {
	tb.Helper()
	elements, err := NewElementChecker()
	if err != nil {
		tb.Fatal(err)
	}
	return binaryCodec{elements}
}

// compareWithStandard decodes data as each request, and as the standard decoder does behind the same scan: both accept
// it or none, and the messages are equal.
func compareWithStandard(t *testing.T, c binaryCodec, data []byte) (accepted int) {
	t.Helper()
	for _, m := range generatedRequests() {
		standard := m.ProtoReflect().New().Interface()
		_, want := c.elements.Binary(data, m.ProtoReflect().Descriptor())
		if want == nil {
			want = shortError(proto.Unmarshal(data, standard))
		}
		got := c.Unmarshal(data, m)
		name := m.ProtoReflect().Descriptor().Name()
		switch {
		case (got == nil) != (want == nil) || got != nil && got.Error() != want.Error():
			t.Fatalf("%x as %s: %v, and the standard decoder says %v", data, name, got, want)
		case got == nil && !proto.Equal(m, standard):
			t.Fatalf("%x as %s:\n%v\nand the standard decoder says\n%v", data, name, m, standard)
		case got == nil:
			accepted++
		}
	}
	return accepted
}

// FuzzBinaryCodec compares the codec with the standard decoder on arbitrary bytes.
func FuzzBinaryCodec(f *testing.F) {
	for _, data := range oddRequests(f) {
		f.Add(data)
	}
	c := newBinaryCodec(f)
	f.Fuzz(func(t *testing.T, data []byte) { compareWithStandard(t, c, data) })
}

func TestOddRequests(t *testing.T) {
	c := newBinaryCodec(t)
	for _, data := range oddRequests(t) {
		compareWithStandard(t, c, data)
	}
}

// TestEveryChangedByte changes each byte of requests to each value, and cuts them at each byte.
func TestEveryChangedByte(t *testing.T) {
	c := newBinaryCodec(t)
	accepted := 0
	for _, data := range oddRequests(t)[:2] {
		for i := range data {
			before := data[i]
			for value := range 256 {
				data[i] = byte(value)
				accepted += compareWithStandard(t, c, data)
			}
			data[i] = before
			compareWithStandard(t, c, data[:i])
		}
	}
	if accepted == 0 {
		t.Error("no changed request was accepted")
	}
}

// TestPlainRequestsUseTheGeneratedDecoder: the comparisons above would show nothing if it were never used.
func TestPlainRequestsUseTheGeneratedDecoder(t *testing.T) {
	c := newBinaryCodec(t)
	requests := oddRequests(t)
	for i, want := range []bool{true, true, false, false, false} {
		usage, err := c.elements.Binary(requests[i], (&quoratev1.AllocateRequest{}).ProtoReflect().Descriptor())
		if err != nil || usage.Plain != want {
			t.Errorf("request %d is plain: %v, %v", i, usage.Plain, err)
		}
	}
}

// oddRequests begin with two ordinary ones.
func oddRequests(tb testing.TB) [][]byte {
	tb.Helper()
	encode := func(m proto.Message) []byte {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		return data
	}
	small := &quoratev1.AllocateRequest{Id: "a", Claims: []*quoratev1.Claim{{
		Tree: "t", Node: "é", Amounts: map[string]int64{"cores": 1, "memory": 1 << 40}, Priority: new(int64(-3)),
		Items: []*quoratev1.ItemPick{{Resource: "slot", Count: 2, Names: []string{"a", ""}}},
	}}}
	other := &quoratev1.AllocateRequest{
		Id: "b", Claims: []*quoratev1.Claim{{Tree: "t", Unpreemptable: new(false)}}, Mode: quoratev1.Mode_MODE_WAIT,
		Labels: map[string]string{"": "v", "k": ""}, TtlMs: -1, Unpreemptable: true,
		Principal: &quoratev1.Principal{User: "u", Groups: []string{"g"}}, UserData: map[string]string{"d": "e"},
	}
	plain := encode(small)
	field := func(number protowire.Number, content ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	number := func(name protoreflect.Name) protowire.Number {
		return (&quoratev1.AllocateRequest{}).ProtoReflect().Descriptor().Fields().ByName(name).Number()
	}
	varint := func(name protoreflect.Name, content ...byte) []byte {
		return append(protowire.AppendTag(nil, number(name), protowire.VarintType), content...)
	}
	amounts := func(pair ...byte) []byte { return field(number("claims"), field(3, pair...)...) }
	labels := func(pair ...byte) []byte { return field(number("labels"), pair...) }
	principal := func(content ...byte) []byte { return field(number("principal"), content...) }
	return [][]byte{
		plain, encode(other),
		append(slices.Clone(plain), 0xf8, 0x01, 1),            // an unknown field
		amounts(0x0d, 1, 2, 3, 4, 0x10, 5),                    // a key of a fixed width
		field(1, 0xff),                                        // not UTF-8
		amounts(0x0a, 1, 'k', 0x12, 1, 5),                     // a text instead of a number
		amounts(0x0a, 1, 'k', 0x11, 1, 0, 0, 0, 0, 0, 0, 0),   // a fixed width instead of a varint
		amounts(0x0a, 1, 'k', 0x10, 1, 0x10, 2, 0x0a, 1, 'l'), // everything twice
		amounts(0x10, 7), amounts(0x0a, 1, 'k'), amounts(),    // without a key, a value, both
		amounts(0x0a, 1, 'k', 0x1a, 1, 'x', 0x10, 9), // an unknown field of a pair
		labels(0x0a, 1, 0xff, 0x12, 1, 'v'), labels(0x0a, 1, 'k', 0x12, 1, 0xc0), labels(0x08, 3, 0x10, 4),
		append(slices.Clone(plain), plain...),                           // each field twice
		principal(field(1, 'u')...),                                     // a principal
		slices.Concat(principal(0x0a, 1, 'u'), principal(0x12, 1, 'g')), // nested messages are merged
		{0x0b, 0x0c},
		{0xfb, 0x01, 0x08, 1, 0xfc, 0x01},
		{0x0c}, // groups: known, unknown, only the end
		{0x08, 1},
		field(number("mode"), 1),
		varint("principal", 1), // numbers instead of texts, and the other way round
		{0x00, 1},
		{0x07, 1},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1}, // no such fields
		protowire.AppendVarint([]byte{0x0a}, 1<<63), protowire.AppendVarint([]byte{0x0a}, 1<<31),
		varint("mode", 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), // an enum of -1
		varint("mode", 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), // a number of 65 bits
		varint("mode", 0x80, 0x80, 0x80, 0x80, 0x10),
		varint("unpreemptable", 2),
		varint("unpreemptable", 0x80, 0x80, 0x04), // truncated, a bool above 1
		{0x8a, 0x00, 1, 'a'},
		{0x0a, 0x81, 0x00, 'a'}, // needless bytes in a tag and in a length
		[]byte(strings.Repeat("\x0a\x00", 2000)),
	}
}

// TestAnswersAreStandardProtobuf encodes answers with every field set, and appends to what is there.
func TestAnswersAreStandardProtobuf(t *testing.T) {
	c := newBinaryCodec(t)
	for _, m := range []proto.Message{
		&quoratev1.AllocateResponse{}, &quoratev1.BatchAllocateResponse{}, &quoratev1.RenewResponse{},
		&quoratev1.BatchRenewResponse{}, &quoratev1.ReleaseResponse{}, &quoratev1.BatchReleaseResponse{},
		&quoratev1.ListTreesResponse{},
	} {
		fillMessage(m.ProtoReflect(), 0)
		encoded, err := c.MarshalAppend([]byte("before"), m)
		after, found := strings.CutPrefix(string(encoded), "before")
		decoded := m.ProtoReflect().New().Interface()
		if err != nil || !found || proto.Unmarshal([]byte(after), decoded) != nil || !proto.Equal(m, decoded) {
			t.Errorf("%T became %v, %v", m, decoded, err)
		}
	}
}

// fillMessage sets every field down to some depth; of a oneof the last one wins.
func fillMessage(m protoreflect.Message, depth int) {
	value := func(f protoreflect.FieldDescriptor, nested protoreflect.Value) protoreflect.Value {
		switch f.Kind() { //nolint:exhaustive // the others panic
		case protoreflect.MessageKind:
			fillMessage(nested.Message(), depth+1)
			return nested
		case protoreflect.StringKind:
			return protoreflect.ValueOfString(fmt.Sprint("é", depth))
		case protoreflect.BoolKind:
			return protoreflect.ValueOfBool(true)
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(1)
		case protoreflect.Int64Kind:
			return protoreflect.ValueOfInt64(-5)
		case protoreflect.Int32Kind:
			return protoreflect.ValueOfInt32(-5)
		case protoreflect.Uint32Kind:
			return protoreflect.ValueOfUint32(5)
		case protoreflect.Uint64Kind:
			return protoreflect.ValueOfUint64(1 << 63)
		}
		panic(f.FullName())
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case f.Message() != nil && depth > 6: // messages may contain themselves
		case f.IsMap():
			pairs := m.Mutable(f).Map()
			pairs.Set(value(f.MapKey(), protoreflect.Value{}).MapKey(), value(f.MapValue(), pairs.NewValue()))
		case f.IsList():
			list := m.Mutable(f).List()
			for range 2 {
				list.Append(value(f, list.NewElement()))
			}
		default:
			m.Set(f, value(f, m.NewField(f)))
		}
	}
}

// BenchmarkCodec compares generated code with reflection, on batches; one op is one request or answer of 512.
func BenchmarkCodec(b *testing.B) {
	c := newBinaryCodec(b)
	request := &quoratev1.BatchAllocateRequest{}
	answer := &quoratev1.BatchAllocateResponse{}
	for i := range 512 {
		id := fmt.Sprint("bench-", i)
		request.Requests = append(request.GetRequests(), &quoratev1.AllocateRequest{
			Id:     id,
			Claims: []*quoratev1.Claim{{Tree: "bench", Node: "a/b/c", Amounts: map[string]int64{"cores": 1, "memory": 1}}},
		})
		granted := &quoratev1.AllocateResponse{Write: &quoratev1.WriteInfo{Index: 9}, Allocation: &quoratev1.Allocation{
			Id: id, Fence: 9, State: quoratev1.AllocationState_ALLOCATION_STATE_HELD,
			Claims: []*quoratev1.HeldClaim{{
				Tree: "bench", Node: "a/b/c", Placed: "a/b/c", Amounts: map[string]int64{"cores": 1, "memory": 1},
			}},
		}}
		answer.Outcomes = append(answer.GetOutcomes(),
			&quoratev1.AllocateOutcome{Outcome: &quoratev1.AllocateOutcome_Granted{Granted: granted}})
	}
	data, err := proto.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	var buffer []byte
	for name, run := range map[string]func() error{
		"decode/standard":  func() error { return proto.Unmarshal(data, &quoratev1.BatchAllocateRequest{}) },
		"decode/generated": func() error { return new(quoratev1.BatchAllocateRequest).UnmarshalVT(data) },
		"scan": func() error {
			_, err := c.elements.Binary(data, request.ProtoReflect().Descriptor())
			return err
		},
		"encode/standard": func() (err error) {
			buffer, err = proto.MarshalOptions{}.MarshalAppend(buffer[:0], answer)
			return err
		},
		"encode/generated": func() (err error) { buffer, err = c.MarshalAppend(buffer[:0], answer); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range max(b.N/512, 1) {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
