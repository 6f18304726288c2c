package procedures

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// TestRulesGolden lists the rule of every method: a change of who may call a method is a change of this file.
func TestRulesGolden(t *testing.T) {
	known, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, path := range slices.Sorted(maps.Keys(known)) {
		rule, verb := known[path].Rule, ""
		if rule.Verb != 0 {
			verb = rule.Verb.String()
		}
		scope := strings.ToLower(strings.TrimPrefix(rule.Scope.String(), "RULE_SCOPE_"))
		lines.WriteString(strings.TrimRight(fmt.Sprintf("%-58s %-13s %s", path, scope, verb), " ") + "\n")
	}
	path := filepath.Join("testdata", "rules.txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines.String() != string(want) {
		t.Errorf("%s differs; if that is wanted, rewrite it with -args -rewrite.\ngot:\n%s", path, &lines)
	}
}

// TestEveryMethodNeedsARule checks that a schema with a wrong or missing rule is refused, which ends the start of a
// server.
func TestEveryMethodNeedsARule(t *testing.T) {
	rule := func(scope quoratev1.RuleScope, verb string) *quoratev1.Rule {
		return &quoratev1.Rule{Scope: scope, Verb: verb}
	}
	for name, c := range map[string]struct {
		rule   *quoratev1.Rule
		public bool
		says   string // part of the error; empty if there is none
	}{
		"no rule":          {nil, true, "test.v1.S.M has no rule"},
		"no rule of peers": {nil, false, "test.v1.S.M has no rule"},
		"no scope":         {rule(quoratev1.RuleScope_RULE_SCOPE_UNSPECIFIED, "hold"), true, "has no rule"},
		"unknown scope":    {rule(99, "hold"), true, "has no rule"},
		"unknown verb":     {rule(quoratev1.RuleScope_RULE_SCOPE_LEDGER, "hodl"), true, `"hodl" is not a verb`},
		"public with verb": {rule(quoratev1.RuleScope_RULE_SCOPE_PUBLIC, "hold"), true, "asks no verb"},
		"cluster, no verb": {rule(quoratev1.RuleScope_RULE_SCOPE_CLUSTER, ""), true, "no verb of the cluster"},
		"cluster, of node": {rule(quoratev1.RuleScope_RULE_SCOPE_CLUSTER, "hold"), true, "no verb of the cluster"},
		"answer, no verb":  {rule(quoratev1.RuleScope_RULE_SCOPE_ANSWER, ""), true, "no verb"},
		"client for nodes": {rule(quoratev1.RuleScope_RULE_SCOPE_NODE, ""), true, "for other callers"},
		"peer for clients": {rule(quoratev1.RuleScope_RULE_SCOPE_PUBLIC, ""), false, "for other callers"},
		"good for clients": {rule(quoratev1.RuleScope_RULE_SCOPE_CLUSTER, "cluster.read"), true, ""},
		"good for ledger":  {rule(quoratev1.RuleScope_RULE_SCOPE_LEDGER, ""), true, ""},
		"good for nodes":   {rule(quoratev1.RuleScope_RULE_SCOPE_NODE, ""), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := []protoreflect.FileDescriptor{schemaWith(t, c.rule)}
			var err error
			if c.public {
				_, err = newTable(append(PublicFiles(), files...), nil)
			} else {
				_, err = newTable(PublicFiles(), files)
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

func schemaWith(t *testing.T, rule *quoratev1.Rule) protoreflect.FileDescriptor {
	t.Helper()
	options := &descriptorpb.MethodOptions{}
	if rule != nil {
		proto.SetExtension(options, quoratev1.E_Rule, rule)
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("test.proto"), Package: new("test.v1"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("E")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new("S"), Method: []*descriptorpb.MethodDescriptorProto{{
				Name: new("M"), InputType: new(".test.v1.E"), OutputType: new(".test.v1.E"),
				Options: options,
			}},
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
