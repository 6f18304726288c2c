package wirelimit_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wirelimit"
)

var generous = wirelimit.Limits{Elements: 1 << 20, Size: 1 << 30, Depth: 100}

func newChecker(t testing.TB, limits wirelimit.Limits, messages ...proto.Message) *wirelimit.Checker {
	t.Helper()
	var descriptors []protoreflect.MessageDescriptor
	for _, m := range messages {
		descriptors = append(descriptors, m.ProtoReflect().Descriptor())
	}
	c, err := wirelimit.New(limits, descriptors...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t testing.TB, m proto.Message) (binary, text []byte) {
	t.Helper()
	binary, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err = protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return binary, text
}

func each(t *testing.T, c *wirelimit.Checker, m proto.Message, look func(t *testing.T, u wirelimit.Usage, err error)) {
	t.Helper()
	binary, text := encode(t, m)
	d := m.ProtoReflect().Descriptor()
	t.Run("binary", func(t *testing.T) {
		usage, err := c.Binary(binary, d)
		look(t, usage, err)
	})
	t.Run("json", func(t *testing.T) {
		usage, err := c.JSON(text, d)
		look(t, usage, err)
	})
}

// TestEveryBoundOfEveryRequest fills each list and map of each request up to its bound and to one more.
func TestEveryBoundOfEveryRequest(t *testing.T) {
	bounds := 0
	for _, request := range requests(t) {
		c := newChecker(t, generous, request.New().Interface())
		walk(t, request.Descriptor(), nil, func(path []protoreflect.FieldDescriptor, most int) {
			bounds++
			name := fmt.Sprintf("%s.%s", request.Descriptor().Name(), names(path))
			for n, want := range map[int]bool{most: false, most + 1: true} {
				m := request.New()
				fill(m, path, n)
				each(t, c, m.Interface(), func(t *testing.T, _ wirelimit.Usage, err error) {
					t.Helper()
					var refused *wirelimit.Error
					if errors.As(err, &refused) != want || (err != nil) != want {
						t.Fatalf("%s with %d of %d: got %v", name, n, most, err)
					}
					if want && (plain(refused.Field) != names(path) ||
						!strings.Contains(refused.Text, fmt.Sprintf("no more than %d", most))) {
						t.Errorf("%s: the refusal says %q", name, refused)
					}
				})
			}
		})
	}
	if bounds < 40 {
		t.Errorf("found %d bounds, there are more", bounds)
	}
}

func requests(t *testing.T) []protoreflect.MessageType {
	t.Helper()
	var found []protoreflect.MessageType
	for _, file := range procedures.PublicFiles() {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				kind, err := protoregistry.GlobalTypes.FindMessageByName(methods.Get(j).Input().FullName())
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, kind)
			}
		}
	}
	return found
}

// walk visits every bounded list and map below a message, except in fields that are validated separately.
func walk(t *testing.T, d protoreflect.MessageDescriptor, path []protoreflect.FieldDescriptor,
	visit func([]protoreflect.FieldDescriptor, int),
) {
	t.Helper()
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		rules, err := protovalidate.ResolveFieldRules(f)
		if err != nil {
			t.Fatal(err)
		}
		to := append(path[:len(path):len(path)], f)
		if most := max(rules.GetRepeated().GetMaxItems(), rules.GetMap().GetMaxPairs()); most > 0 {
			visit(to, int(most))
		}
		inside := f.Message()
		if f.IsMap() {
			inside = f.MapValue().Message()
		}
		separate := validatepb.Ignore_IGNORE_ALWAYS
		if inside != nil && rules.GetIgnore() != separate && rules.GetRepeated().GetItems().GetIgnore() != separate {
			walk(t, inside, to, visit)
		}
	}
}

func fill(m protoreflect.Message, path []protoreflect.FieldDescriptor, n int) {
	f := path[0]
	last, count := len(path) == 1, n
	if !last {
		count = 1
	}
	switch {
	case f.IsMap():
		entries := m.Mutable(f).Map()
		for i := range count {
			value := entries.NewValue()
			if !last {
				fill(value.Message(), path[1:], n)
			}
			entries.Set(protoreflect.ValueOfString(fmt.Sprintf("k%d", i)).MapKey(), value)
		}
	case f.IsList():
		list := m.Mutable(f).List()
		for range count {
			value := list.NewElement()
			if !last {
				fill(value.Message(), path[1:], n)
			}
			list.Append(value)
		}
	default:
		fill(m.Mutable(f).Message(), path[1:], n)
	}
}

func names(path []protoreflect.FieldDescriptor) string {
	var all []string
	for _, f := range path {
		all = append(all, f.TextName())
	}
	return strings.Join(all, ".")
}

func plain(field string) string {
	var b strings.Builder
	inside := false
	for _, r := range field {
		switch {
		case r == '[':
			inside = true
		case r == ']':
			inside = false
		case !inside:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func emptyClaims(n int) []*quoratev1.Claim {
	claims := make([]*quoratev1.Claim, n)
	for i := range claims {
		claims[i] = &quoratev1.Claim{}
	}
	return claims
}

// TestPathsNameTheElement: field paths have the format of the validator.
func TestPathsNameTheElement(t *testing.T) {
	c := newChecker(t, generous, &quoratev1.AllocateRequest{}, &quoratev1.SetLimitsRequest{})
	claims := emptyClaims(3)
	claims[2].Items = make([]*quoratev1.ItemPick, 33)
	for i := range claims[2].GetItems() {
		claims[2].Items[i] = &quoratev1.ItemPick{}
	}
	each(t, c, &quoratev1.AllocateRequest{Claims: claims}, func(t *testing.T, _ wirelimit.Usage, err error) {
		t.Helper()
		if err == nil || err.Error() != "claims[2].items: must contain no more than 32 items" {
			t.Errorf("got %v", err)
		}
	})
}

// TestAnElementOfABatchIsRefusedAlone: the requests in a batch are validated separately, so that the scan applies only
// the bounds of the whole message to them.
func TestAnElementOfABatchIsRefusedAlone(t *testing.T) {
	batch := &quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{{Claims: emptyClaims(33)}, {}}}
	each(t, newChecker(t, generous, batch), batch, func(t *testing.T, _ wirelimit.Usage, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("got %v", err)
		}
	})
	few := generous
	few.Elements = 30
	each(t, newChecker(t, few, batch), batch, func(t *testing.T, _ wirelimit.Usage, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "more than 30 elements") {
			t.Errorf("got %v", err)
		}
	})
	small := generous
	small.Size = 2000
	each(t, newChecker(t, small, batch), batch, func(t *testing.T, _ wirelimit.Usage, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "more than 2000 bytes") {
			t.Errorf("got %v", err)
		}
	})
}

// TestInvalidJSON: JSON that the scan cannot parse is refused before the decoder allocates memory.
func TestInvalidJSON(t *testing.T) {
	c := newChecker(t, generous, &quoratev1.AllocateRequest{})
	d := (&quoratev1.AllocateRequest{}).ProtoReflect().Descriptor()
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for text, want := range map[string]string{
		`{"claims":[{}`:      "not valid JSON",
		`{"claims":[{}}`:     "not valid JSON",
		`{"claims" 3}`:       "not valid JSON",
		`{"unknown":` + deep: "nested deeper than 100",
		`{"id":` + deep:      "nested deeper than 100",
		`{"claims":` + strings.Repeat(`{"a":`, 200):             "nested deeper than 100",
		`{"cl\u0061ims":[` + strings.Repeat(`{},`, 32) + `{}]}`: "claims: must contain no more than 32 items",
	} {
		if _, err := c.JSON([]byte(text), d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{
		`{}`, `{"claims":null}`, `null`, `{"user_data":{"a":"b"}}`, `{"userData":{}}`,
		`{"principal":{"groups":["a"]}}`,
	} {
		if _, err := c.JSON([]byte(text), d); err != nil {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestKeysInPathsAreCut: map keys in error paths are shortened.
func TestKeysInPathsAreCut(t *testing.T) {
	// No request has lists in the values of a map; the answer with principals has.
	kept := wirelimit.Limits{Elements: 100, Size: 1 << 30, Depth: 4}
	m := &quoratev1.SetLimitsRequest{Limits: map[string]*quoratev1.Limit{}}
	for i := range 600 {
		m.Limits[fmt.Sprintf("%s%d", strings.Repeat("ü", 5000), i)] = &quoratev1.Limit{}
	}
	each(t, newChecker(t, kept, m), m, func(t *testing.T, _ wirelimit.Usage, err error) {
		t.Helper()
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("got %v", err)
		}
	})
}

// TestTheEstimateCoversTheMessage compares the estimate with the memory that decoding takes.
func TestTheEstimateCoversTheMessage(t *testing.T) {
	labels := map[string]string{"owner": "someone", "purpose": "a test"}
	heavy := &quoratev1.BatchAllocateRequest{}
	for i := range 1000 {
		r := &quoratev1.AllocateRequest{
			Id: fmt.Sprintf("request-%d", i), Labels: labels,
			UserData: map[string]string{"key": strings.Repeat("x", 200)},
		}
		for range 8 {
			r.Claims = append(
				r.Claims, &quoratev1.Claim{
					Tree: "cern", Node: "physics/higgs",
					Amounts: map[string]int64{"cores": 3, "memory": 1 << 40},
				})
		}
		heavy.Requests = append(heavy.Requests, r)
	}
	thin := &quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{{Claims: emptyClaims(100_000)}}}
	maps := &quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{{Claims: emptyClaims(20_000)}}}
	for _, c := range maps.GetRequests()[0].GetClaims() {
		c.Amounts = map[string]int64{"": 0}
	}
	tree := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{}}}
	for i := range 5000 {
		n := &quoratev1.Node{Path: fmt.Sprintf("a/%d", i), Limits: map[string]*quoratev1.Limit{}}
		for r := range 20 {
			n.Limits[fmt.Sprintf("r%d", r)] = &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 5}}
		}
		tree.Trees[0].Nodes = append(tree.GetTrees()[0].GetNodes(), n)
	}
	for name, m := range map[string]proto.Message{
		"records": heavy, "empty claims": thin, "claims with a map": maps,
		"a tree": tree,
	} {
		t.Run(name, func(t *testing.T) {
			binary, _ := encode(t, m)
			usage, err := newChecker(t, generous, m).Binary(binary, m.ProtoReflect().Descriptor())
			if err != nil {
				t.Fatal(err)
			}
			into := m.ProtoReflect().New().Interface()
			before := heap()
			if err := proto.Unmarshal(binary, into); err != nil {
				t.Fatal(err)
			}
			took := heap() - before
			runtime.KeepAlive(into)
			t.Logf("%d bytes on the wire take %d, estimated %d", len(binary), took, usage.Size)
			if usage.Size < took*9/10 || usage.Size > 4*took {
				t.Errorf("%d bytes were estimated as %d", took, usage.Size)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// FuzzBinary: the scan refuses only messages that the validator refuses too, and accepted messages are within the
// estimate.
func FuzzBinary(f *testing.F) {
	validator, err := protovalidate.New()
	if err != nil {
		f.Fatal(err)
	}
	limits := wirelimit.Limits{Elements: 2000, Size: 1 << 20, Depth: 20}
	kinds := []proto.Message{
		&quoratev1.AllocateRequest{}, &quoratev1.BatchAllocateRequest{},
		&quoratev1.ApplyTreesRequest{}, &quoratev1.UpdateItemsRequest{}, &quoratev1.SetLimitsRequest{},
	}
	c := newChecker(f, limits, kinds...)
	for i := range kinds {
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType),
			[]byte("\x0a\x03abc\x12\x00\x1a\x00")))
	}
	binary, _ := encode(f, &quoratev1.AllocateRequest{
		Id: "a", Claims: emptyClaims(33),
		Labels: map[string]string{"a": "b"},
	})
	f.Add(uint8(0), binary)
	f.Fuzz(func(t *testing.T, number uint8, data []byte) {
		kind := kinds[int(number)%len(kinds)]
		d := kind.ProtoReflect().Descriptor()
		usage, scanned := c.Binary(data, d)
		m := kind.ProtoReflect().New().Interface()
		decoded := proto.Unmarshal(data, m)
		judge(t, judged{usage: usage, scanned: scanned, decoded: decoded, message: m, checker: c, validator: validator})
	})
}

// FuzzJSON is the same for JSON.
func FuzzJSON(f *testing.F) {
	validator, err := protovalidate.New()
	if err != nil {
		f.Fatal(err)
	}
	limits := wirelimit.Limits{Elements: 2000, Size: 1 << 20, Depth: 20}
	kinds := []proto.Message{
		&quoratev1.AllocateRequest{}, &quoratev1.BatchAllocateRequest{},
		&quoratev1.ApplyTreesRequest{}, &quoratev1.UpdateItemsRequest{}, &quoratev1.SetLimitsRequest{},
	}
	c := newChecker(f, limits, kinds...)
	for i, text := range []string{
		`{"id":"a","claims":[{"tree":"t","amounts":{"a":"1"}}],"labels":{"a":"b"}}`,
		`{"requests":[{"claims":[{},{}]},{}]}`,
		`{"trees":[{"name":"t","nodes":[{"path":"a","limits":{"c":{"amount":3}}}]}],"expected_revision":1}`,
		`{"updates":[{}]}`, `{"limits":{"a":{"unlimited":true}}}`,
	} {
		f.Add(uint8(i), text)
	}
	f.Add(uint8(0), `{"claims":[`+strings.Repeat("{},", 33)+`{}]}`)
	f.Fuzz(func(t *testing.T, number uint8, data string) {
		kind := kinds[int(number)%len(kinds)]
		d := kind.ProtoReflect().Descriptor()
		usage, scanned := c.JSON([]byte(data), d)
		m := kind.ProtoReflect().New().Interface()
		decoded := protojson.Unmarshal([]byte(data), m)
		judge(t, judged{usage: usage, scanned: scanned, decoded: decoded, message: m, checker: c, validator: validator})
	})
}

type judged struct {
	usage            wirelimit.Usage
	scanned, decoded error
	message          proto.Message
	checker          *wirelimit.Checker
	validator        protovalidate.Validator
}

// judge compares the result of a scan with the decoder and the validator.
func judge(t *testing.T, j judged) {
	t.Helper()
	if j.decoded != nil {
		return
	}
	again, err := proto.Marshal(j.message)
	if err != nil {
		return // a text that is not UTF-8
	}
	// The decoder keeps the last value of a repeated key or single field; the scan counts all of them.
	canonical, plain := j.checker.Binary(again, j.message.ProtoReflect().Descriptor())
	var refused *wirelimit.Error
	switch {
	case j.scanned == nil && plain != nil && !merges(j.message):
		t.Errorf("passes as it was sent, and not as it is: %v", plain)
	case j.scanned == nil && canonical.Elements > j.usage.Elements:
		t.Errorf("%d elements were counted, there are %d", j.usage.Elements, canonical.Elements)
	case j.scanned != nil && !errors.As(j.scanned, &refused):
		t.Errorf("not understood, but the decoder does: %v", j.scanned)
	case plain != nil && errors.As(plain, &refused) && refused.Field != "" && j.validator.Validate(j.message) == nil:
		t.Errorf("refused, and the validator finds nothing: %v", plain)
	}
}

// merges reports whether a message has singular message fields, whose repeated occurrences are merged.
func merges(m proto.Message) bool {
	found := false
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				found = found || merges(v.List().Get(i).Message().Interface())
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			found = true
		}
		return !found
	})
	return found
}
