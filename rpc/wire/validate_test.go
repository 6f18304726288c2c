package wire

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// quicklyChecked are the requests that isCertainlyValid knows.
func quicklyChecked() []proto.Message {
	return []proto.Message{
		&quoratev1.AllocateRequest{}, &quoratev1.ReleaseRequest{}, &quoratev1.RenewRequest{},
		&quoratev1.BatchAllocateRequest{}, &quoratev1.BatchReleaseRequest{}, &quoratev1.BatchRenewRequest{},
	}
}

func newRules(t testing.TB) protovalidate.Validator {
	t.Helper()
	rules, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestValidityFollowsSchema takes a request with every field set and breaks each rule of its schema in turn: only then
// is it not certainly valid. Values at the bounds of the rules are.
func TestValidityFollowsSchema(t *testing.T) {
	rules := newRules(t)
	for _, m := range quicklyChecked() {
		root, broken, kept := m.ProtoReflect(), 0, 0
		if isCertainlyValid(m) {
			t.Errorf("an empty %s is taken for valid", root.Descriptor().Name())
		}
		fillMessage(t, root)
		mutateMessage(t, root, string(root.Descriptor().Name()), func(what string) {
			err := rules.Validate(m)
			if got := isCertainlyValid(m); got != (err == nil) {
				t.Errorf("%s: certainly valid is %v, and protovalidate says %v", what, got, err)
			}
			if err != nil {
				broken++
			} else {
				kept++
			}
		})
		if broken < 2 || kept < 1 {
			t.Errorf("%s: %d of the messages broke a rule, and %d kept to all", root.Descriptor().Name(), broken, kept)
		}
		if err := rules.Validate(m); err != nil {
			t.Errorf("%s was not restored: %v", root.Descriptor().Name(), err)
		}
	}
}

func fillMessage(t *testing.T, m protoreflect.Message) {
	t.Helper()
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		rules := rulesOf(t, f)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(
				validValue(t, f.MapKey(), m, rules.GetMap().GetKeys()).MapKey(),
				validValue(t, f.MapValue(), m, rules.GetMap().GetValues()))
		case f.IsList():
			list := m.Mutable(f).List()
			if f.Message() != nil {
				fillMessage(t, list.AppendMutable().Message())
			} else {
				list.Append(validValue(t, f, m, rules.GetRepeated().GetItems()))
			}
		case f.Message() != nil:
			fillMessage(t, m.Mutable(f).Message())
		default:
			m.Set(f, validValue(t, f, m, rules))
		}
	}
}

func rulesOf(t *testing.T, f protoreflect.FieldDescriptor) *validatepb.FieldRules {
	t.Helper()
	rules, err := protovalidate.ResolveFieldRules(f)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func validValue(
	t *testing.T, f protoreflect.FieldDescriptor, m protoreflect.Message, rules *validatepb.FieldRules,
) protoreflect.Value {
	t.Helper()
	valid, _ := scalarValues(t, f, rules)
	if len(valid) == 0 {
		return m.Get(f)
	}
	return valid[0]
}

// mutateMessage visits a message with each of its fields changed in turn, and restores it.
func mutateMessage(t *testing.T, m protoreflect.Message, path string, visit func(what string)) {
	t.Helper()
	saved := proto.Clone(m.Interface())
	restore := func() {
		proto.Reset(m.Interface())
		proto.Merge(m.Interface(), saved)
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		name, rules := path+"."+string(f.Name()), rulesOf(t, f)
		knownRules(t, name, rules)
		switch {
		case f.IsMap():
			mutateMap(t, m, f, name, rules, visit)
		case f.IsList():
			mutateList(t, m, f, name, rules, visit)
		case f.Message() != nil:
			mutateMessage(t, m.Mutable(f).Message(), name, visit)
		default:
			valid, broken := scalarValues(t, f, rules)
			for _, value := range slices.Concat(valid, broken) {
				m.Set(f, value)
				visit(fmt.Sprintf("%s = %.80q", name, fmt.Sprint(value)))
			}
		}
		m.Clear(f)
		visit(name + " cleared")
		restore()
	}
}

func mutateList(
	t *testing.T, m protoreflect.Message, f protoreflect.FieldDescriptor, name string, rules *validatepb.FieldRules,
	visit func(string),
) {
	t.Helper()
	items := rules.GetRepeated().GetItems()
	list := m.Mutable(f).List()
	first := list.Get(0)
	if f.Message() != nil && items.GetIgnore() != validatepb.Ignore_IGNORE_ALWAYS {
		mutateMessage(t, first.Message(), name+"[0]", visit)
	}
	if f.Message() == nil {
		valid, broken := scalarValues(t, f, items)
		for _, value := range slices.Concat(valid, broken) {
			list.Set(0, value)
			visit(fmt.Sprintf("%s[0] = %.80q", name, fmt.Sprint(value)))
		}
		list.Set(0, first)
	}
	most := int(rules.GetRepeated().GetMaxItems())
	if most == 0 {
		t.Fatalf("%s has no bound", name)
	}
	for n := 1; n <= most; n++ { // one more than allowed in the end
		list.Append(first)
		if n >= most-1 {
			visit(fmt.Sprintf("%d %s", n+1, name))
		}
	}
	list.Truncate(1)
}

func mutateMap(
	t *testing.T, m protoreflect.Message, f protoreflect.FieldDescriptor, name string, rules *validatepb.FieldRules,
	visit func(string),
) {
	t.Helper()
	keys, brokenKeys := scalarValues(t, f.MapKey(), rules.GetMap().GetKeys())
	values, brokenValues := scalarValues(t, f.MapValue(), rules.GetMap().GetValues())
	pairs := m.NewField(f)
	m.Set(f, pairs)
	for _, key := range slices.Concat(keys, brokenKeys) {
		pairs.Map().Set(key.MapKey(), values[0])
		visit(fmt.Sprintf("%s has the key %.80q", name, key.String()))
		pairs.Map().Clear(key.MapKey())
	}
	for _, value := range slices.Concat(values, brokenValues) {
		pairs.Map().Set(keys[0].MapKey(), value)
		visit(fmt.Sprintf("%s has the value %.80q", name, fmt.Sprint(value)))
	}
	pairs.Map().Clear(keys[0].MapKey())
	most := int(rules.GetMap().GetMaxPairs())
	if most == 0 {
		t.Fatalf("%s has no bound", name)
	}
	for n := 1; n <= most+1; n++ {
		pairs.Map().Set(protoreflect.ValueOfString(fmt.Sprint(n)).MapKey(), values[0])
		if n >= most {
			visit(fmt.Sprintf("%d %s", n, name))
		}
	}
}

// scalarValues returns values that keep to the rules of a scalar and values that do not, each at a bound.
func scalarValues(
	t *testing.T, f protoreflect.FieldDescriptor, rules *validatepb.FieldRules,
) (valid, broken []protoreflect.Value) {
	t.Helper()
	knownRules(t, string(f.FullName()), rules)
	switch f.Kind() { //nolint:exhaustive // the test fails for others
	case protoreflect.StringKind:
		return stringValues(rules.GetString())
	case protoreflect.Int64Kind:
		valid = append(valid, protoreflect.ValueOfInt64(1), protoreflect.ValueOfInt64(0))
		numbers := rules.GetInt64()
		low, high := []protoreflect.Value{protoreflect.ValueOfInt64(-1), protoreflect.ValueOfInt64(math.MinInt64)},
			[]protoreflect.Value{protoreflect.ValueOfInt64(math.MaxInt64)}
		if !numbers.HasGte() {
			valid = append(valid, low...)
		} else {
			broken = append(broken, append(low, protoreflect.ValueOfInt64(numbers.GetGte()-1))...)
		}
		if !numbers.HasLte() {
			return append(valid, high...), broken
		}
		return append(valid, protoreflect.ValueOfInt64(numbers.GetLte())),
			append(broken, append(high, protoreflect.ValueOfInt64(numbers.GetLte()+1))...)
	case protoreflect.EnumKind:
		for i := range f.Enum().Values().Len() {
			valid = append(valid, protoreflect.ValueOfEnum(f.Enum().Values().Get(i).Number()))
		}
		if rules.GetEnum().GetDefinedOnly() {
			broken = append(broken, protoreflect.ValueOfEnum(-1),
				protoreflect.ValueOfEnum(protoreflect.EnumNumber(f.Enum().Values().Len())))
		}
		return valid, broken
	case protoreflect.BoolKind:
		return []protoreflect.Value{protoreflect.ValueOfBool(true), protoreflect.ValueOfBool(false)}, nil
	case protoreflect.Uint64Kind:
		return []protoreflect.Value{protoreflect.ValueOfUint64(1), protoreflect.ValueOfUint64(math.MaxUint64)}, nil
	}
	t.Fatalf("%s: this test does not know fields of kind %s yet", f.FullName(), f.Kind())
	return nil, nil
}

const (
	idPattern        = "^[!-~]{1,128}$"
	namespacePattern = "^[!-)+-~]{0,256}$"
)

func stringValues(rules *validatepb.StringRules) (valid, broken []protoreflect.Value) {
	add := func(list *[]protoreflect.Value, texts ...string) {
		for _, text := range texts {
			*list = append(*list, protoreflect.ValueOfString(text))
		}
	}
	switch rules.GetPattern() { // knownRules permits these
	case namespacePattern:
		add(&valid, "", "default", "account/hans", "!", "~", ")", "+", strings.Repeat("x", 256))
		add(&broken, " ", "*", "a*", "\x7f", "a\n", "ä", "a b", strings.Repeat("x", 257), "\xff")
		return valid, broken
	case idPattern:
		add(&valid, "a", "!", "~", strings.Repeat("x", 128))
		add(&broken, "", " ", "\x7f", "a\n", "\na", "ä", "a b", strings.Repeat("x", 129), "\xff")
		return valid, broken
	}
	add(&valid, "x", "ä", " ")
	most := int(rules.GetMaxBytes())
	if most == 0 {
		add(&valid, strings.Repeat("x", 5000))
	} else {
		add(&valid, strings.Repeat("x", most))
		add(&broken, strings.Repeat("x", most+1), strings.Repeat("ä", most/2+1))
	}
	if rules.GetMinLen() == 1 {
		add(&broken, "")
	} else {
		add(&valid, "")
	}
	return valid, broken
}

// knownRules fails the test if a field has a rule that this test cannot break. Then teach it, and isCertainlyValid.
func knownRules(t *testing.T, name string, rules *validatepb.FieldRules) {
	t.Helper()
	known := map[protoreflect.FullName]bool{
		"buf.validate.FieldRules.string": true, "buf.validate.FieldRules.int64": true,
		"buf.validate.FieldRules.enum": true, "buf.validate.FieldRules.repeated": true,
		"buf.validate.FieldRules.map": true, "buf.validate.FieldRules.required": true,
		"buf.validate.FieldRules.ignore":     true,
		"buf.validate.StringRules.min_len":   true,
		"buf.validate.StringRules.pattern":   slices.Contains([]string{idPattern, namespacePattern}, rules.GetString().GetPattern()),
		"buf.validate.StringRules.max_bytes": true,
		"buf.validate.Int64Rules.gte":        rules.GetInt64().GetGte() == 0,
		"buf.validate.Int64Rules.lte":        true, "buf.validate.EnumRules.defined_only": true,
		"buf.validate.RepeatedRules.min_items": true, "buf.validate.RepeatedRules.max_items": true,
		"buf.validate.RepeatedRules.items": true, "buf.validate.MapRules.max_pairs": true,
		"buf.validate.MapRules.keys": true, "buf.validate.MapRules.values": true,
	}
	if rules.GetString().GetMinLen() > 1 {
		t.Fatalf("%s: this test does not know strings of at least %d characters yet", name, rules.GetString().GetMinLen())
	}
	if rules == nil {
		return
	}
	rules.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !known[f.FullName()] {
			t.Fatalf("%s: this test does not know the rule %s yet", name, f.FullName())
		}
		if f.Message() == nil {
			return true
		}
		v.Message().Range(func(inner protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if !known[inner.FullName()] {
				t.Fatalf("%s: this test does not know the rule %s yet", name, inner.FullName())
			}
			return true
		})
		return true
	})
}
