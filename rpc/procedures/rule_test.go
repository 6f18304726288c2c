package procedures

import (
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/quorate/quorate/internal/access"
)

// TestEveryRuleHasAMethod: a rule of a method that is gone would be found again by the next method of that name.
func TestEveryRuleHasAMethod(t *testing.T) {
	known, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for service, rules := range methodRules {
		for method := range rules {
			if path := "/" + service + "/" + method; !known.IsUnary(path) && !known[path].Streams {
				t.Errorf("there is no method %s", path)
			}
		}
	}
}

// TestEveryMethodNeedsARule checks that a schema with a wrong or missing rule is refused, which ends the start of a
// server.
func TestEveryMethodNeedsARule(t *testing.T) {
	rule := func(scope Scope, verb access.Verb) *Rule { return &Rule{scope, verb} }
	for name, c := range map[string]struct {
		rule   *Rule
		public bool
		says   string // part of the error; empty if there is none
	}{
		"no rule":          {nil, true, "test.v1.S.M has no rule"},
		"no rule of peers": {nil, false, "test.v1.S.M has no rule"},
		"no scope":         {rule(0, access.Hold), true, "has no rule"},
		"unknown scope":    {rule(99, access.Hold), true, "has no rule"},
		"public with verb": {rule(ScopePublic, access.Hold), true, "asks no verb"},
		"cluster, no verb": {rule(ScopeCluster, 0), true, "no verb of the cluster"},
		"cluster, of node": {rule(ScopeCluster, access.Hold), true, "no verb of the cluster"},
		"answer, no verb":  {rule(ScopeAnswer, 0), true, "no verb"},
		"client for nodes": {rule(ScopeNode, 0), true, "for other callers"},
		"peer for clients": {rule(ScopePublic, 0), false, "for other callers"},
		"good for clients": {rule(ScopeCluster, access.ClusterRead), true, ""},
		"good for ledger":  {rule(ScopeLedger, 0), true, ""},
		"good for nodes":   {rule(ScopeNode, 0), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := []protoreflect.FileDescriptor{schemaWith(t)}
			rules := maps.Clone(methodRules)
			if c.rule != nil {
				rules["test.v1.S"] = map[string]Rule{"M": *c.rule}
			}
			var err error
			if c.public {
				_, err = newTable(append(PublicFiles(), files...), nil, rules)
			} else {
				_, err = newTable(PublicFiles(), files, rules)
			}
			switch {
			case c.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

func schemaWith(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("test.proto"), Package: new("test.v1"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("E")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new("S"), Method: []*descriptorpb.MethodDescriptorProto{{
				Name: new("M"), InputType: new(".test.v1.E"), OutputType: new(".test.v1.E"),
			}},
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
