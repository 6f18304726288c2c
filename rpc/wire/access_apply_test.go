package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// everyTerm is a binding with every field set.
func everyTerm() *quoratev1.Binding {
	return &quoratev1.Binding{
		Role: "broker", Subjects: subjectsOf("user corp/ann", "group robots", "account ci", "everyone"), MaxPriority: 7,
		Unpreemptable: true, HoldAs: &quoratev1.HoldAs{Names: []string{"corp/ann", "corp/bob"}},
		EndsAt: timestamppb.New(time.UnixMilli(1_800_000_000_001)),
	}
}

// exampleSection is in canonical form with every field set.
func exampleSection() *quoratev1.AccessSection {
	claims := []*quoratev1.ClaimRule{{Claim: "org", Values: []string{"a", "b"}}, {Claim: "ref", Values: []string{"main"}}}
	return &quoratev1.AccessSection{
		Roles: []*quoratev1.AccessRole{{Name: "night", Description: "at night", Verbs: []string{"usage.read", "hold"}}},
		Issuers: []*quoratev1.Issuer{
			{
				Name: "file", Url: "https://a", KeysFile: "/keys", Audience: "q", User: "sub", ClaimRules: claims,
				Groups:     []*quoratev1.GroupRule{{Group: "deploy", ClaimRules: claims}},
				Algorithms: []string{"ES256", "RS256"}, MaxAgeMs: 60_000,
			},
			{Name: "url", Url: "https://b", KeysUrl: "https://b/keys", Audience: "q", User: "sub", ClaimRules: claims},
		},
		Certificates: []*quoratev1.CertificateRule{{Dns: "ci.example.org", User: "ci"}, {Name: "zuul", User: "zuul"}},
		Bindings: []*quoratev1.Binding{
			everyTerm(),
			{Role: "broker", Subjects: subjectsOf("account a"), HoldAs: &quoratev1.HoldAs{Any: true}},
			{Role: "night", Subjects: subjectsOf("account b")},
		},
		TokenLifeMs: 3_600_000,
	}
}

func TestEveryFieldOfAccessIsConverted(t *testing.T) {
	section := exampleSection()
	assertAllSet(t, section, section.GetIssuers()[0], section.GetBindings()[0], section.GetRoles()[0])
	command, _, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Access: section})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(exampleSection(), FromSection(*command.Access), protocmp.Transform()); diff != "" {
		t.Errorf("the section comes back different (-want +got):\n%s", diff)
	}
}

// assertAllSet fails if an example leaves a field unset; only one place of keys can be named.
func assertAllSet(t *testing.T, messages ...proto.Message) {
	t.Helper()
	for _, m := range messages {
		r := m.ProtoReflect()
		for i := range r.Descriptor().Fields().Len() {
			if field := r.Descriptor().Fields().Get(i); !r.Has(field) && field.Name() != "keys_url" {
				t.Errorf("the example has no %s", field.FullName())
			}
		}
	}
}

func TestAnEmptySectionReplacesAndAnAbsentOneDoesNot(t *testing.T) {
	command, _, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Access: &quoratev1.AccessSection{}})
	if err != nil || command.Access == nil {
		t.Errorf("%+v, %v", command.Access, err)
	}
	if command, _, err = ToApplyTrees(&quoratev1.ApplyTreesRequest{}); err != nil || command.Access != nil {
		t.Errorf("%+v, %v", command.Access, err)
	}
	if wire := FromSection(access.Section{}); wire != nil {
		t.Errorf("an empty section is shown as %v", wire)
	}
}

func TestRefusedAccess(t *testing.T) {
	bound := func(change func(*quoratev1.Binding)) *quoratev1.ApplyTreesRequest {
		tree := exampleTree()
		wrong := everyTerm()
		change(wrong)
		tree.Nodes[1].Bindings = []*quoratev1.Binding{everyTerm(), wrong}
		return &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}
	}
	section := func(change func(*quoratev1.AccessSection)) *quoratev1.ApplyTreesRequest {
		s := exampleSection()
		change(s)
		return &quoratev1.ApplyTreesRequest{Access: s}
	}
	until := func(at *timestamppb.Timestamp) func(*quoratev1.Binding) {
		return func(b *quoratev1.Binding) { b.EndsAt = at }
	}
	for want, request := range map[string]*quoratev1.ApplyTreesRequest{
		`trees[0].nodes[1].bindings[1].subjects[2]: "me" is not a user ISSUER/NAME`: bound(
			func(b *quoratev1.Binding) {
				b.Subjects[2].Kind, b.Subjects[2].Name = quoratev1.SubjectKind_SUBJECT_KIND_USER, "me"
			}),
		"bindings[1].ends_at: seconds:":   bound(until(&timestamppb.Timestamp{Seconds: 1 << 40})),
		"bindings[1].ends_at: seconds:-1": bound(until(&timestamppb.Timestamp{Seconds: -1})),
		"is not a time after 1970":        bound(until(&timestamppb.Timestamp{})),
		`access.roles[0].verbs[1]: "hodl" is not a verb; allowed are`: section(
			func(s *quoratev1.AccessSection) { s.Roles[0].Verbs[1] = "hodl" }),
		"access.issuers[1].keys_file: the issuer has keys-url and keys-file": section(
			func(s *quoratev1.AccessSection) { s.Issuers[1].KeysFile = "/k" }),
		"access.token_life_ms: -1 ms is not a life": section(
			func(s *quoratev1.AccessSection) { s.TokenLifeMs = -1 }),
		"access.bindings[2].max_priority: role viewer has no hold": section(
			func(s *quoratev1.AccessSection) { s.Bindings[2].Role, s.Bindings[2].MaxPriority = "viewer", 1 }),
		"access.bindings[2].subjects[0]: 0 is not a kind of subject": section(
			func(s *quoratev1.AccessSection) { s.Bindings[2].Subjects[0] = &quoratev1.Subject{} }),
	} {
		_, _, err := ToApplyTrees(request)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "  ", " "), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestBindingsInAnyOrder: callers send nodes, bindings and subjects in any order, and refusals name their positions.
func TestBindingsInAnyOrder(t *testing.T) {
	bind := func(role string, to ...string) *quoratev1.Binding {
		return &quoratev1.Binding{Role: role, Subjects: subjectsOf(to...)}
	}
	tree := &quoratev1.Tree{
		Name:     "t",
		Bindings: []*quoratev1.Binding{bind("viewer", "everyone"), bind("holder", "account b", "account a")},
		Nodes: []*quoratev1.Node{
			{Path: "b"},
			{Path: "a", Bindings: []*quoratev1.Binding{
				bind("viewer", "account c", "user x/y"), bind("viewer", "user x/y", "account c"),
				bind("broker", "everyone", "group g", "everyone"), bind("cleaner", "account a"),
			}},
		},
	}
	command, moved, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
	if err != nil {
		t.Fatal(err)
	}
	account := func(name string) access.Subject { return access.Subject{Kind: access.AccountSubject, Name: name} }
	everyone := access.Subject{Kind: access.Everyone}
	want := [][]access.Binding{
		{
			{Role: "holder", To: []access.Subject{account("a"), account("b")}},
			{Role: "viewer", To: []access.Subject{everyone}},
		},
		{
			{Role: "broker", To: []access.Subject{{Kind: access.Group, Name: "g"}, everyone}},
			{Role: "cleaner", To: []access.Subject{account("a")}},
			{Role: "viewer", To: []access.Subject{{Kind: access.User, Name: "x/y"}, account("c")}},
		},
		nil,
	}
	for i, n := range command.Trees[0].Nodes {
		if diff := cmp.Diff(want[i], n.Bindings); diff != "" {
			t.Errorf("node %q (-want +got):\n%s", n.Path, diff)
		}
	}
	for sorted, written := range map[string]string{
		"trees[0].bindings[0].subjects[0]":          "trees[0].bindings[1].subjects[1]",
		"trees[0].bindings[1].role":                 "trees[0].bindings[0].role",
		"trees[0].nodes[0].bindings[0].subjects[0]": "trees[0].nodes[1].bindings[2].subjects[1]",
		"trees[0].nodes[0].bindings[0].subjects[1]": "trees[0].nodes[1].bindings[2].subjects[0]",
		"trees[0].nodes[0].bindings[1].ids":         "trees[0].nodes[1].bindings[3].ids",
		"trees[0].nodes[0].bindings[2].subjects[1]": "trees[0].nodes[1].bindings[0].subjects[0]",
		"trees[0].nodes[0].bindings":                "trees[0].nodes[1].bindings",
		"trees[0].nodes[0].path":                    "trees[0].nodes[1].path",
		`trees[0].nodes[1].limits["a"]`:             `trees[0].nodes[0].limits["a"]`,
	} {
		if got := moved.RestoreField(&quota.Error{Field: sorted}); got.Field != written {
			t.Errorf("%s is named as %s, want %s", sorted, got.Field, written)
		}
	}
}
