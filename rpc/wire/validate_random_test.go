package wire

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestValidityOfRandomMessages compares with protovalidate on requests in which several things may be wrong at once.
func TestValidityOfRandomMessages(t *testing.T) {
	rules := newRules(t)
	text := rapid.OneOf(rapid.SampledFrom([]string{
		"", "a", "cern", "é", strings.Repeat("n", 63), strings.Repeat("n", 64),
		strings.Repeat("n", 256), strings.Repeat("n", 257),
	}), rapid.String())
	number := rapid.OneOf(rapid.Just(int64(0)), rapid.SampledFrom([]int64{
		-1, 1, 60_000, 60_001, 3_600_000, 3_600_001,
		604_800_000, 604_800_001, math.MinInt64, math.MaxInt64,
	}), rapid.Int64())
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		messages := quicklyChecked()
		m := messages[rapid.IntRange(0, len(messages)-1).Draw(t, "type")]
		drawMessage(t, m.ProtoReflect(), text, number)
		err := rules.Validate(m)
		verdicts[err == nil]++
		if got := isCertainlyValid(m); got != (err == nil) {
			t.Fatalf("certainly valid is %v, and protovalidate says %v of %v", got, err, m)
		}
	})
	if len(verdicts) < 2 {
		t.Errorf("all messages had the same verdict: %v", verdicts)
	}
}

// drawMessage draws fields of which most are valid, so that messages as a whole often are.
func drawMessage(
	t *rapid.T, m protoreflect.Message, text *rapid.Generator[string], number *rapid.Generator[int64],
) {
	scalar := func(f protoreflect.FieldDescriptor) protoreflect.Value {
		ordinary := rapid.IntRange(0, 20).Draw(t, "ordinary") > 0
		switch f.Kind() { //nolint:exhaustive // TestValidityFollowsSchema knows that there are no others
		case protoreflect.StringKind:
			if ordinary {
				return protoreflect.ValueOfString("atlas")
			}
			return protoreflect.ValueOfString(text.Draw(t, "text"))
		case protoreflect.Int64Kind:
			if ordinary {
				return protoreflect.ValueOfInt64(7)
			}
			return protoreflect.ValueOfInt64(number.Draw(t, "number"))
		case protoreflect.EnumKind:
			if ordinary {
				return protoreflect.ValueOfEnum(1)
			}
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.IntRange(-2, 8).Draw(t, "enum")))
		case protoreflect.Uint64Kind:
			return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "fence"))
		}
		return protoreflect.ValueOfBool(ordinary)
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		needed := slices.Contains([]protoreflect.Name{"id", "tree", "resource", "name", "claims", "item"}, f.Name())
		if !needed && rapid.Bool().Draw(t, "unset") || rapid.IntRange(0, 30).Draw(t, "missing") == 0 {
			continue
		}
		n := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 0, 32, 33}).Draw(t, "count")
		switch {
		case f.IsMap():
			for i := range n {
				key := fmt.Sprint("key", i)
				if rapid.IntRange(0, 20).Draw(t, "odd key") == 0 {
					key = text.Draw(t, "key")
				}
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(key).MapKey(), scalar(f.MapValue()))
			}
		case f.IsList() && f.Message() != nil:
			for range min(n, 3) {
				drawMessage(t, m.Mutable(f).List().AppendMutable().Message(), text, number)
			}
		case f.IsList():
			for range n {
				m.Mutable(f).List().Append(scalar(f))
			}
		case f.Message() != nil:
			drawMessage(t, m.Mutable(f).Message(), text, number)
		default:
			m.Set(f, scalar(f))
		}
	}
}

// BenchmarkValidate is one small request; rules is protovalidate alone.
func BenchmarkValidate(b *testing.B) {
	rules := newRules(b)
	m := &quoratev1.AllocateRequest{Id: "bench-1-1", Claims: []*quoratev1.Claim{{
		Tree: "bench", Node: "a/b/leaf-1", Amounts: map[string]int64{"cores": 1, "memory": 1},
	}}}
	for name, validator := range map[string]protovalidate.Validator{
		"quick": BoundedValidator{Rules: rules}, "rules": rules,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := validator.Validate(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
