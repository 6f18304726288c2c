package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota/policy"
)

func parseTrees(file string, text []byte) ([]*quoratev1.Tree, error) {
	m, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	return m.Trees, nil
}

func formatTrees(trees []*quoratev1.Tree) ([]byte, error) { return Format(&Manifest{Trees: trees}) }

func TestParsePolicies(t *testing.T) {
	const text = `policies:
  pool: {base: borrowing, preemption: lower-priority}
  lab:
    base: strict
    unset: zero
    sum: unchecked
    child-limit: within-parent
    unknown-nodes: count-at-ancestor
    claim-nodes: leaves
    borrowing: soft
    preemption: all
trees:
  cern:
    policy: lab
    resources: {cores: {unit: count}}
`
	got, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []*quoratev1.Policy{
		{
			Name: "lab", Base: "strict",
			Unset:        quoratev1.UnsetRule_UNSET_RULE_ZERO,
			Sum:          quoratev1.SumRule_SUM_RULE_UNCHECKED,
			ChildLimit:   quoratev1.ChildLimitRule_CHILD_LIMIT_RULE_WITHIN_PARENT,
			UnknownNodes: quoratev1.UnknownNodesRule_UNKNOWN_NODES_RULE_COUNT_AT_ANCESTOR,
			ClaimNodes:   quoratev1.ClaimNodesRule_CLAIM_NODES_RULE_LEAVES,
			Borrowing:    quoratev1.BorrowingRule_BORROWING_RULE_SOFT,
			Preemption:   quoratev1.PreemptionRule_PREEMPTION_RULE_ALL,
		},
		{Name: "pool", Base: "borrowing", Preemption: quoratev1.PreemptionRule_PREEMPTION_RULE_LOWER_PRIORITY},
	}
	if diff := cmp.Diff(want, got.Policies, protocmp.Transform()); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if len(got.Trees) != 1 || got.Trees[0].GetPolicy() != "lab" {
		t.Errorf("trees are %v", got.Trees)
	}
	formatted, err := Format(got)
	if err != nil {
		t.Fatal(err)
	}
	const wantText = `version: 1
policies:
  lab:
    base: strict
    unset: zero
    sum: unchecked
    child-limit: within-parent
    unknown-nodes: count-at-ancestor
    claim-nodes: leaves
    borrowing: soft
    preemption: all
  pool: {base: borrowing, preemption: lower-priority}
trees:
  cern:
    policy: lab
    resources: {cores: {unit: count}}
`
	if diff := cmp.Diff(wantText, string(formatted)); diff != "" {
		t.Errorf("formatted (-want +got):\n%s", diff)
	}
}

func TestPoliciesAlone(t *testing.T) {
	const text = "version: 1\npolicies: {lab: {base: strict}}\n"
	got, err := Parse("f", []byte(text))
	if err != nil || len(got.Policies) != 1 || len(got.Trees) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if formatted, err := Format(got); err != nil || string(formatted) != text {
		t.Errorf("formatted: %q, %v", formatted, err)
	}
}

func TestParseSaysWhatIsWrongWithPolicies(t *testing.T) {
	const names = "borrowing, capped, cohort, nested, open, project, strict"
	for text, want := range map[string]string{
		"lab: {base: strict, summ: maybe}": `f:2:23: policy "lab" has no key "summ"; allowed are base, unset, sum, ` +
			"child-limit, unknown-nodes, claim-nodes, borrowing, preemption",
		"lab: {sum: unchecked}": "f:2:3: policy lab has no base, whose other switches it keeps; name one of " + names,
		"lab: {base: lenient}": `f:2:15: the base of policy lab is a built-in policy, which "lenient" is not; ` +
			"there are " + names,
		"lab: strict": `f:2:8: policy "lab" is a map of base, unset, sum, child-limit, unknown-nodes, claim-nodes, ` +
			`borrowing, preemption, not "strict"`,
		"strict: {base: open}": `f:2:3: policy "strict" is built in and never changes: define a policy of another name`,
		"a/b: {base: open}": `f:2:3: "a/b" is not a valid policy name: use 1 to 63 letters, digits and _ . @ + -, ` +
			"beginning with a letter, digit or _",
		strings.Repeat("n", 64) + ": {base: open}": "is not a valid policy name",
		"lab: {base: strict, sum: maybe}": `f:2:28: sum of policy lab is one of unchecked, within-limit, ` +
			`within-limit-less-own, not "maybe"`,
		`lab: {base: strict, sum: ""}`:    `f:2:28: sum of policy "lab" is a word, not ""`,
		"lab: {base: strict, sum: []}":    `f:2:28: sum of policy "lab" is a word, not a list`,
		"lab: {base: {}, sum: unchecked}": `f:2:15: base of policy "lab" is a word, not a map`,
		"lab: {base: open}\n  lab: {}":    "f:3:3: ",
		"lab: {base: open, base: open}":   "f:2:21: ",
		"lab: {base: strict, sum: unchecked, preemption: all}": "f:2:51: in policy lab, preemption: all excludes " +
			"borrowing: none (of the base strict), because without soft borrowing only limits are in the way of a " +
			"claim; use borrowing: soft, or preemption: none",
		"lab: {base: borrowing, borrowing: none}": "f:2:37: in policy lab, preemption: all (of the base borrowing) " +
			"excludes borrowing: none, because without soft borrowing only limits are in the way of a claim; use " +
			"borrowing: soft, or preemption: none",
		"lab: {base: cohort, unknown-nodes: create}": "f:2:38: in policy lab, unknown-nodes: create excludes " +
			"borrowing: bounded (of the base cohort)",
	} {
		got, err := Parse("f", []byte("policies:\n  "+text+"\n"))
		if err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func TestTooManyPolicies(t *testing.T) {
	manifest := func(n int) []byte {
		text := "policies:\n"
		for i := range n {
			text += "  p" + strings.Repeat("x", i/26) + string(rune('a'+i%26)) + ": {base: open}\n"
		}
		return []byte(text)
	}
	if m, err := Parse("f", manifest(MaxPolicies)); err != nil || len(m.Policies) != MaxPolicies {
		t.Error(err)
	}
	if _, err := Parse("f", manifest(MaxPolicies+1)); err == nil ||
		!strings.Contains(err.Error(), "policies has 101 entries; 100 are allowed") {
		t.Error(err)
	}
}

// TestEveryPolicyIsReadBack: whatever can be defined is written so that it is read back, and written so again.
func TestEveryPolicyIsReadBack(t *testing.T) { rapid.Check(t, checkPolicyRoundTrip) }

func FuzzPolicies(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkPolicyRoundTrip)) }

func checkPolicyRoundTrip(t *rapid.T) {
	m := &quoratev1.Policy{
		Name: rapid.StringMatching(nodeName().String()).Draw(t, "name"),
		Base: rapid.SampledFrom(strings.Split(policy.Presets().Names(), ", ")).Draw(t, "base"),
	}
	spec := PolicySpec(m)
	for _, s := range policy.Switches() {
		*s.Field(&spec) = rapid.SampledFrom(append([]string{""}, s.Values...)).Draw(t, s.Name)
	}
	_, problem := policy.Presets().Define(spec)
	builtIn := policy.Presets()[spec.Name] != nil
	wanted := &Manifest{Policies: []*quoratev1.Policy{PolicyMessage(spec)}}
	text, err := Format(wanted)
	if (err == nil) != (problem == nil && !builtIn) {
		t.Fatalf("%+v: %v, but the definition is %+v", spec, err, problem)
	}
	if err != nil {
		return
	}
	got, err := Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted.Policies, got.Policies, protocmp.Transform()); diff != "" {
		t.Fatalf("%s\n(-written +read):\n%s", text, diff)
	}
	if again, err := Format(got); err != nil || string(again) != string(text) {
		t.Fatalf("written again: %s, %v", again, err)
	}
}

// The table of switches is the one source: its names are fields of the API, and its values those of the enums.
func TestSwitchesAreEnumsOfTheAPI(t *testing.T) {
	for _, s := range policy.Switches() {
		field := fieldOf(s)
		if field == nil || field.Enum() == nil {
			t.Errorf("the switch %s is not an enum of the API", s.Name)
			continue
		}
		var words []string
		values := field.Enum().Values()
		prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
		for i := 1; i < values.Len(); i++ {
			word := strings.TrimPrefix(string(values.ByNumber(protoreflect.EnumNumber(i)).Name()), prefix)
			words = append(words, strings.ToLower(strings.ReplaceAll(word, "_", "-")))
		}
		if !slices.Equal(words, s.Values) {
			t.Errorf("%s has the values %v, and %v in the API", s.Name, s.Values, words)
		}
	}
	spec := PolicySpec(&quoratev1.Policy{Name: "lab", Base: "strict", Sum: 99})
	if _, problem := policy.Presets().Define(spec); problem == nil || problem.Field != "sum" {
		t.Errorf("a value that does not exist is %+v", problem)
	}
}
