package wire

import (
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/procedures"
)

// TestPatternsHaveWords looks at every rule of the protocol: each pattern has a text, and no text is left over.
func TestPatternsHaveWords(t *testing.T) {
	unused := map[string]bool{}
	for pattern, text := range patternTexts {
		unused[pattern] = true
		if strings.Contains(text, pattern) {
			t.Errorf("the text of %s has the pattern itself", pattern)
		}
	}
	look := func(f protoreflect.FieldDescriptor, rules *validatepb.StringRules) {
		if !rules.HasPattern() {
			return
		}
		delete(unused, rules.GetPattern())
		if patternTexts[rules.GetPattern()] == "" {
			t.Errorf("%s: the pattern %s has no text for people", f.FullName(), rules.GetPattern())
		}
	}
	for _, file := range procedures.PublicFiles() {
		visitFields(file.Messages(), func(f protoreflect.FieldDescriptor) {
			rules := rulesOf(t, f)
			look(f, rules.GetString())
			look(f, rules.GetRepeated().GetItems().GetString())
			look(f, rules.GetMap().GetKeys().GetString())
			look(f, rules.GetMap().GetValues().GetString())
			if len(rules.GetCel()) > 0 {
				t.Errorf("%s has a rule in CEL: this test does not know whether people can read its message", f.FullName())
			}
		})
	}
	for pattern := range unused {
		t.Errorf("no field has the pattern %s", pattern)
	}
}

func visitFields(messages protoreflect.MessageDescriptors, visit func(protoreflect.FieldDescriptor)) {
	for i := range messages.Len() {
		for j := range messages.Get(i).Fields().Len() {
			visit(messages.Get(i).Fields().Get(j))
		}
		visitFields(messages.Get(i).Messages(), visit)
	}
}

func TestBrokenPatternIsDescribed(t *testing.T) {
	rules := BoundedValidator{Rules: newRules(t)}
	err := rules.Validate(&quoratev1.ReleaseRequest{Id: "j\u00f6b"}, protovalidate.WithFailFast())
	const want = "validation error: id: must be 1 to 128 visible ASCII characters, without spaces"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
