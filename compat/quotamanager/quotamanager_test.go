package quotamanager

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/internal/manifest"
)

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTheExampleIsTheWalkThrough: the manifest of the example equals the conversion of the original's own file.
func TestTheExampleIsTheWalkThrough(t *testing.T) {
	c, err := Convert(read(t, "../../examples/quota-manager/forest.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range c.Trees {
		delete(tree.GetLabels(), RootLabel)
	}
	want, err := manifest.Parse("borrowing.yaml", read(t, "../../examples/borrowing.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range want.Trees {
		tree.Labels = map[string]string{}
	}
	if diff := cmp.Diff(want.Trees, c.Trees, protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestFaultsAreProblems: all faults that the original accepts silently are reported together.
func TestFaultsAreProblems(t *testing.T) {
	_, err := Convert(read(t, "testdata/faults.json"), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`tree "T": a resource has an empty name`,
		`tree "T": resource "cpu" is listed twice`,
		`tree "T" has the roots "A" and "Second"`,
		`node "A": the quota of cpu is "10Gi", which is not a whole number (the original accepts this: it is 0)`,
		`node "A": the quota of disk is "-3", which is negative`,
		`node "B": hard is "maybe", which is not true or false`,
		`node "B": the quota of cpu is "99999999999999999999", which is more than 4611686018427387903`,
		`node "B": the quota of disk is "1.5", which is not a whole number`,
		`node "B" has a quota of "dsik", which is not a resource of the tree`,
		`node "Lost" has the unknown parent "Nobody"`,
		`node "X" is its own ancestor`,
		`node "Y" is its own ancestor`,
		`node "Self" is its own ancestor`,
		`tree "Empty" has no root`,
		`tree "T" is in the forests "F" and "G"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the problems do not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), `"Z" is its own`) {
		t.Errorf("Z hangs below a cycle and is in none:\n%v", err)
	}
}

func TestConvertRefuses(t *testing.T) {
	tree := func(nodes string) string {
		return `{"kind": "QuotaTree", "metadata": {"name": "T"}, "spec": {"resourceNames": ["cpu"], "nodes": {` +
			nodes + `}}}`
	}
	deep := `"n0": {"quota": {"cpu": "1"}}`
	for i := range 17 {
		deep += `, "n` + string(rune('a'+i)) + `": {"parent": "n` +
			map[bool]string{true: "0", false: string(rune('a' + i - 1))}[i == 0] +
			`", "quota": {"cpu": "1"}}`
	}
	root := `"A": {"quota": {"cpu": "1"}}`
	tests := map[string]struct {
		text string
		want string
	}{
		"nothing":          {"", "the configuration has no tree"},
		"no JSON":          {"{\n\"kind\": QuotaTree}", "line 2: not JSON"},
		"cut off":          {"{\n\"kind\":\n", "line 3: not JSON"},
		"a number":         {"5", "a document is not an object"},
		"another kind":     {`{"kind": "Quota"}`, `invalid kind "Quota": it must be "QuotaTree"`},
		"no kind":          {`{"metadata": {"name": "T"}}`, `invalid kind ""`},
		"a consumer":       {`{"kind": "Consumer"}`, "a Consumer document is a request, not configuration"},
		"a list in a list": {`[[` + tree(root) + `]]`, "a document is not an object"},
		"no name":          {`{"kind": "QuotaTree"}`, `metadata.name: a name is empty`},
		"a tree twice":     {tree(root) + tree(root), `tree "T" is listed twice`},
		"a node twice":     {tree(root + ",\n" + root), `line 2: "A" is given twice`},
		"no quota":         {tree(`"A": {"parent": "nil"}`), `tree "T": node "A" has no quota`},
		"an empty node":    {tree(`"A": null`), `tree "T": node "A" has no quota`},
		"a quota as a number": {
			tree(`"A": {"quota": {"cpu": 1}}`),
			`error parsing tree: tree "T": node "A": the quota of cpu is 1; it must be a string in quotes`,
		},
		"hard as a boolean": {
			tree(`"A": {"hard": true, "quota": {}}`),
			`error parsing tree: tree "T": node "A": hard is true; it must be a string in quotes`,
		},
		"a node as a list": {
			tree(`"A": []`),
			`error parsing tree: tree "T": "spec.nodes" must be an object, not a list`,
		},
		"too deep": {tree(deep), `is at depth 17; the maximum is 16`},
		"a resource's name": {
			`{"kind": "QuotaTree", "metadata": {"name": "T"}, "spec": {"resourceNames": ["a b"]}}`,
			`"a b" is not a valid resource name`,
		},
		"a forest's tree": {
			`{"trees": [` + tree(root) + `], "forests": [{"name": "F", "trees": ["U"]}]}`,
			`forest "F" lists tree "U", which is not in the configuration`,
		},
		"a forest twice":        {`{"forests": [{"name": "F"}, {"name": "F"}]}`, `forest "F" is listed twice`},
		"a forest without name": {`{"forests": [{}]}`, "a forest: a name is empty"},
		"too long a text":       {strings.Repeat(" ", compat.MaxSize+1), "up to 4194304 are read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Convert([]byte(test.text), Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Convert answers %v, %v; want an error that says %q", c, err, test.want)
			}
		})
	}
}

// TestAllProblemsAtOnce: all values that are not strings are reported, while the original stops at the first.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Convert([]byte(`{"kind": "QuotaTree", "metadata": {"name": "T"}, "spec": {"resourceNames": ["cpu", "disk"], "nodes": {
		"A": {"parent": "nil", "quota": {"cpu": 10, "disk": 2.5}},
		"B": {"parent": "A", "hard": true, "quota": {"cpu": "1", "disk": "x"}},
		"C": {"parent": 7, "quota": {"cpu": null, "disk": "1"}}}}}
		{"kind": "QuotaTree", "metadata": {"name": 5}}`), Options{})
	want := compat.Problems{
		`error parsing tree: tree "T": node "A": the quota of cpu is 10; it must be a string in quotes`,
		`error parsing tree: tree "T": node "A": the quota of disk is 2.5; it must be a string in quotes`,
		`error parsing tree: tree "T": node "B": hard is true; it must be a string in quotes`,
		`error parsing tree: tree "T": node "C": parent is 7; it must be a string in quotes`,
		`tree "T": node "B": the quota of disk is "x", which is not a whole number (the original accepts this: it is 0)`,
		`error parsing tree: tree "": "metadata.name" must be a string in quotes, not a number`,
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestRequest(t *testing.T) {
	c, err := Convert(read(t, "../../examples/quota-manager/forest.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := ParseConsumer(read(t, "testdata/consumer-forest.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := consumer.Request(c.Trees)
	if err != nil {
		t.Fatal(err)
	}
	zero, no := int64(0), false
	want := &quoratev1.AllocateRequest{Id: "job-1", Claims: []*quoratev1.Claim{
		{
			Tree: "ContextTree", Node: "Org-B/Context-4", Amounts: map[string]int64{"cpu": 2}, Priority: &zero,
			PreemptionClass: &zero, Unpreemptable: &no,
		},
		{
			Tree: "ServiceTree", Node: "Srvc-X", Amounts: map[string]int64{"cpu": 2, "disk": 1}, Priority: &zero,
			PreemptionClass: &zero, Unpreemptable: &no,
		},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestRequestFindsNodes by their original names, the root included, and fills up with zeros.
func TestRequestFindsNodes(t *testing.T) {
	c, err := Convert(read(t, "testdata/names.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := ParseConsumer([]byte(`{"kind": "Consumer", "spec": {"id": "j", "trees": [
		{"treeName": "team trees", "groupID": "-2", "request": {"cpu": 2}, "priority": -4, "type": 3, "unPreemptable": true},
		{"treeName": "one", "groupID": "only"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := consumer.Request(c.Trees)
	if err != nil {
		t.Fatal(err)
	}
	priority, kind, yes, zero, no := int64(-4), int64(3), true, int64(0), false
	want := &quoratev1.AllocateRequest{Id: "j", Claims: []*quoratev1.Claim{
		{
			Tree: "team+20trees", Node: "team+2F1+20+28ops+29/_+2D2",
			Amounts:  map[string]int64{"cpu": 2, "memory": 0, "nvidia.com/gpu": 0},
			Priority: &priority, PreemptionClass: &kind, Unpreemptable: &yes,
		},
		{
			Tree: "one", Node: "", Amounts: map[string]int64{"slots": 0}, Priority: &zero, PreemptionClass: &zero,
			Unpreemptable: &no,
		},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestRequestRefuses(t *testing.T) {
	c, err := Convert(read(t, "../../examples/quota-manager/forest.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	consumer := &Consumer{ID: "j", Trees: []ConsumerTree{
		{Tree: "Other", Group: "A"},
		{Tree: "ContextTree", Group: "Context-9", Request: map[string]int64{"disk": 1}},
	}}
	_, err = consumer.Request(c.Trees)
	want := compat.Problems{
		`consumer "j" asks for tree "Other", which is not known`,
		`consumer "j" asks for group "Context-9", which is not a node of tree "ContextTree"`,
		`consumer "j" requests "disk", which is not a resource of tree "ContextTree"`,
	}
	if diff := cmp.Diff(want.Error(), err.Error()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestParseConsumerRefuses(t *testing.T) {
	spec := func(spec string) string { return `{"kind": "Consumer", "spec": {` + spec + `}}` }
	for name, test := range map[string]struct{ text, want string }{
		"the README's own": {
			string(read(t, "testdata/consumer-readme.json")),
			`the key "trees:" has a colon inside its quotes, so the request would name no tree: write "trees"`,
		},
		"another kind": {`{"kind": "QuotaTree"}`, `consumer invalid kind "QuotaTree"`},
		"a kind":       {`{"kind": "consumer"}`, `consumer invalid kind "consumer"`},
		"no id":        {spec(`"trees": [{"treeName": "T"}]`), `spec.id "" is not an id`},
		"no tree":      {spec(`"id": "j"`), "spec.trees has 0 entries"},
		"a tree twice": {
			spec(`"id": "j", "trees": [{"treeName": "T"}, {"treeName": "T"}]`),
			`spec.trees[1]: tree "T" is listed twice`,
		},
		"a negative": {
			spec(`"id": "j", "trees": [{"treeName": "T", "request": {"cpu": -1}}]`),
			`the amount of "cpu" is -1`,
		},
		"a fraction": {
			spec(`"id": "j", "trees": [{"treeName": "T", "request": {"cpu": 1.5}}]`),
			"cannot read the consumer",
		},
		"an unknown key": {
			spec(`"id": "j", "trees": [{"treeName": "T", "unpreemptible": true}]`),
			`unknown field "unpreemptible"`,
		},
		"two": {spec(`"id": "j"`) + spec(`"id": "k"`), "found 2 documents"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseConsumer([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("ParseConsumer answers %v, %v; want an error that says %q", c, err, test.want)
			}
		})
	}
}

// FuzzConvert searches for documents that crash the converter, or are converted to trees that cannot be written as a
// manifest.
func FuzzConvert(f *testing.F) {
	files := []string{"../../examples/quota-manager/forest.json"}
	for _, name := range []string{"readme", "names", "faults", "consumer-forest"} {
		files = append(files, "testdata/"+name+".json")
	}
	for _, file := range files {
		f.Add(read(f, file), true)
		f.Add(read(f, file), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		c, err := Convert(data, Options{Lenient: lenient})
		if err != nil {
			return
		}
		if _, err := manifest.Format(&manifest.Manifest{Trees: c.Trees}); err != nil {
			t.Fatalf("%v\n%v", err, c.Trees)
		}
	})
}

// FuzzParseConsumer searches for requests that crash the parser, or that it cannot parse again after formatting.
func FuzzParseConsumer(f *testing.F) {
	for _, file := range []string{"consumer-forest", "consumer-readme"} {
		f.Add(read(f, "testdata/"+file+".json"))
	}
	trees, err := Convert(read(f, "../../examples/quota-manager/forest.json"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConsumer(data)
		if err != nil {
			return
		}
		if r, err := c.Request(trees.Trees); err == nil && len(r.GetClaims()) != len(c.Trees) {
			t.Fatalf("%d trees, %d claims", len(c.Trees), len(r.GetClaims()))
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatal(err)
		}
	})
}
