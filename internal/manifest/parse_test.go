package manifest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func amount(n int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: n}}
}

func unlimited() *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
}

func TestParse(t *testing.T) {
	text := `---
# comments may stand anywhere
trees:
  two:   # here too
    resources: {cpu: {unit: milli}, "disk/fast": {unit: bytes}, cores: {unit: count}}
    nodes:
      "no": {}      # a name, not a boolean
      "on": {limits: {cpu: 500m}}
      "1.50":
        policy: open
        labels: {owner: "a, b: c", note: 'it''s', number: '010', nothing: "", truth: "yes"}
        nodes:
          "null": {}
      "007": {limits: {"disk/fast": 1.5Gi, cores: unlimited}}
  one:
    policy: strict
    labels:
      "a key": "zeile\nzwei \u00e9"
    limits:
      cores: 0
    resources:
      cores:
        unit: count
`
	got, err := parseTrees("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []*quoratev1.Tree{
		{
			Name:      "one",
			Policy:    "strict",
			Labels:    map[string]string{"a key": "zeile\nzwei é"},
			Limits:    map[string]*quoratev1.Limit{"cores": amount(0)},
			Resources: []*quoratev1.Resource{{Name: "cores", Unit: count}},
		},
		{
			Name: "two",
			Resources: []*quoratev1.Resource{
				{Name: "cores", Unit: count}, {Name: "cpu", Unit: milli}, {Name: "disk/fast", Unit: octet},
			},
			Nodes: []*quoratev1.Node{
				{Path: "007", Limits: map[string]*quoratev1.Limit{"disk/fast": amount(3 << 29), "cores": unlimited()}},
				{Path: "1.50", Policy: "open", Labels: map[string]string{
					"owner": "a, b: c", "note": "it's", "number": "010", "nothing": "", "truth": "yes",
				}},
				{Path: "1.50/null"},
				{Path: "no"},
				{Path: "on", Limits: map[string]*quoratev1.Limit{"cpu": amount(500)}},
			},
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func tree(nodes string) string {
	return "trees:\n  t:\n    resources: {cores: {unit: count}}\n    nodes:\n" + nodes
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	deep := strings.Builder{}
	for i := range 17 {
		fmt.Fprintf(&deep, "%sn:\n%snodes:\n", strings.Repeat(" ", 6+4*i), strings.Repeat(" ", 8+4*i))
	}
	deep.WriteString(strings.Repeat(" ", 80) + "n: {}\n")

	tests := map[string]struct {
		text string
		want string
	}{
		"nothing":           {"", "f:1:1: the manifest is empty"},
		"only comments":     {"# trees:\n", "f:1:1: the manifest is empty"},
		"no map":            {"trees\n", `f:1:1: a manifest is a map and begins with version: 1 and trees:, not with "trees"`},
		"no trees":          {"{}", `f:1:1: the key "trees" is missing`},
		"another key":       {"trees: {}\ntree: {}\n", `f:2:1: the manifest has no key "tree"; allowed are access, policies, trees`},
		"a second document": {"trees: {}\n---\ntrees: {}\n", "f:2:1: a file holds one document"},
		"an ended document": {"trees: {}\n...\n", "f:2:1: a file holds one document"},
		"two headers":       {"---\n---\ntrees: {}\n", "f:2:1: a file holds one document"},
		"a directive":       {"%YAML 1.2\n---\ntrees: {}\n", "f:1:1: directives"},
		"a tree is a number": {
			"trees: {t: 5}",
			`f:1:12: tree "t" is a map of applications, approvals, auto-approve, bindings, defaults, forest, labels, leases, limits, moves, nodes, overtake, policy, principals, queueing, require-principal, require-reason, resources, tenants-see, thresholds, not "5"`,
		},
		"trees is a text": {"trees: cern", `f:1:8: trees is a map of names, not "cern"`},
		"an unknown key": {
			"trees: {t: {resources: {c: {unit: count}}, nods: {}}}",
			`f:1:44: tree "t" has no key "nods"; allowed are applications, approvals, auto-approve, bindings, defaults, forest, labels, leases, limits, moves, nodes, overtake, policy, principals, queueing, require-principal, require-reason, resources, tenants-see, thresholds`,
		},
		"admins of a tree": {
			"trees: {t: {resources: {c: {unit: count}}, admins: [ann]}}",
			`f:1:44: tree "t" has no key "admins"; bindings say who may set limits; write bindings: [{role: limit-admin, subjects: [user corp/ann]}]`,
		},
		"admins of a node": {tree("      a: {admins: [ann]}\n"), `f:5:11: node "a" has no key "admins"; bindings say`},
		"setters of a policy": {
			"policies: {lab: {base: strict, setters: parent}}",
			`f:1:32: policy "lab" has no key "setters"; bindings say who may set limits below their node`,
		},
		"a node's unknown key": {
			tree("      a: {resources: {}}\n"),
			`f:5:11: node "a" has no key "resources"; allowed are applications, auto-approve, bindings, borrow, defaults, hard, labels, lend, limits, nodes, policy, principals, queueing, thresholds`,
		},
		"a duplicate tree": {"trees:\n  t: {}\n  t: {}\n", `f:3:3: "t" is given twice; the first is in line 2`},
		"a duplicate node": {
			tree("      a: {}\n      b: {}\n      a: {}\n"),
			`f:7:7: "a" is given twice; the first is in line 5`,
		},
		"twice, once in quotes": {tree("      a: {}\n      'a': {}\n"), `f:6:7: "a" is given twice`},
		"twice in braces":       {tree("      a: {limits: {cores: 1, cores: 2}}\n"), `f:5:30: "cores" is given twice`},
		"no resource":           {"trees: {t: {}}", `f:1:9: tree "t" registers no resource`},
		"no resource either":    {"trees: {t: {resources: {}}}", `tree "t" registers no resource`},
		"a resource's short": {
			"trees: {t: {resources: {c: count}}}",
			`f:1:28: resource "c" is a map of items, unit, not "count"`,
		},
		"no unit": {"trees: {t: {resources: {c: {}}}}", `f:1:25: resource "c" has no unit`},
		"another unit": {
			"trees: {t: {resources: {c: {unit: GB}}}}",
			`f:1:35: the unit of "c" must be one of count, milli, bytes`,
		},
		"a unit of units": {
			"trees: {t: {resources: {c: {unit: {count: 1}}}}}",
			`f:1:35: the unit of "c" must be one of`,
		},
		"a resource's name": {
			"trees: {t: {resources: {'c d': {unit: count}}}}",
			`f:1:25: "c d" is not a valid resource name`,
		},
		"a tree's name":        {"trees: {a/b: {}}", `f:1:9: "a/b" is not a valid tree name`},
		"a node's path":        {tree("      a/b: {}\n"), `f:5:7: "a/b" is not a valid node name: use 1 to 63 letters`},
		"an empty name":        {tree("      \"\": {}\n"), `f:5:7: "" is not a valid node name`},
		"a long name":          {tree("      " + strings.Repeat("n", 64) + ": {}\n"), "is not a valid node name"},
		"a name that is a map": {tree("      {a: b}: {}\n"), "f:5:7: a key is a word, not a map or a list"},
		"too deep": {
			tree(deep.String()),
			`f:37:71: "n/n/n/n/n/n/n/n/n/n/n/n/n/n/n/n/n" is too deep: a node may be 16 deep`,
		},
		"a policy map": {
			"trees: {t: {policy: {}, resources: {c: {unit: count}}}}",
			`f:1:21: the policy of tree "t" must be a name`,
		},
		"an empty policy": {tree("      a: {policy: ''}\n"), `f:5:19: the policy of node "a" must be a name`},
		"an unknown resource": {
			tree("      a: {limits: {core: 1}}\n"),
			`f:5:20: node "a" limits "core", which its tree does not register; it has cores`,
		},
		"a negative limit": {
			tree("      a: {limits: {cores: -1}}\n"),
			`f:5:27: node "a", limit of "cores": "-1" is negative`,
		},
		"an overflowing limit": {
			tree("      a: {limits: {cores: 4611686018427387904}}\n"),
			`"4611686018427387904" is too large: an amount is at most 4611686018427387903`,
		},
		"half a core":    {tree("      a: {limits: {cores: 0.5}}\n"), `"0.5" is not a whole number of things`},
		"an octal limit": {tree("      a: {limits: {cores: 010}}\n"), `"010" is not an amount`},
		"an unset limit": {tree("      a: {limits: {cores: unset}}\n"), "leave the line out"},
		"a map for a limit": {
			tree("      a: {limits: {cores: {max: 1}}}\n"),
			"the value must be a quantity or the word unlimited",
		},
		"limits without names": {tree("      a: {limits: 100}\n"), `f:5:19: limits is a map of names, not "100"`},
		"a list of nodes":      {tree("      - a\n"), "f:5:7: nodes is a map of names, not a list"},
		"a list in brackets":   {tree("      a: {nodes: [b]}\n"), "f:5:18: nodes is a map of names, not a list"},
		"an anchor":            {tree("      a: &x {}\n"), "f:5:10: anchors (&) and aliases (*) are not supported"},
		"an anchor in itself":  {tree("      a: &x {nodes: {b: *x}}\n"), `f:5:25: the anchor "x" contains itself`},
		"an alias":             {tree("      a: *x\n"), "f:5:10: there is no anchor &x above"},
		"a merge":              {tree("      a: {<<: {}}\n"), "f:5:11: merging (<<) is not read"},
		"a tag":                {tree("      a: !!map {}\n"), "f:5:10: tags (!) are not supported"},
		"a complex key":        {tree("      ? a\n      : {}\n"), "f:5:7: keys with ?"},
		"a block text": {
			tree("      a: {}\n      b:\n        labels:\n          x: |\n            y\n"),
			"f:8:14: texts over several lines",
		},
		"a folded text": {
			tree("      a:\n        labels:\n          x: >-\n            y\n"),
			"f:7:14: texts over several lines",
		},
		"a long label": {
			tree("      a: {labels: {x: '" + strings.Repeat("y", 257) + "'}}\n"),
			`label "x" of node "a" must be a text of at most 256 bytes`,
		},
		"a long label name": {
			tree("      a: {labels: {" + strings.Repeat("y", 64) + ": x}}\n"),
			"has 1 to 63 bytes, this one 64",
		},
		"an empty label name":   {tree("      a: {labels: {\"\": x}}\n"), "has 1 to 63 bytes, this one 0"},
		"a label map":           {tree("      a: {labels: {x: {}}}\n"), `label "x" of node "a" must be a text`},
		"cut off after a colon": {tree("      a:\n"), `f:5:7: "a" has nothing after it: write {}`},
		"cut off after nodes": {
			"trees:\n  t:\n    resources: {cores: {unit: count}}\n    nodes:",
			`f:4:5: "nodes" has nothing after it`,
		},
		"cut off in a name":     {tree("      a: {}\n      b"), `f:6:7: "b" has no value`},
		"cut off in braces":     {tree("      a: {limits: {cores: 1"), "f:5:19: this { is never closed"},
		"cut off in a value":    {tree("      a: {limits: {cores:"), "f:5:19: this { is never closed"},
		"cut off after a brace": {tree("      a: {"), "f:5:10: this { is never closed"},
		"cut off in quotes":     {tree("      a: {labels: {x: \"y"), `f:5:23: this " is never closed`},
		"nothing in the middle": {tree("      a:\n      b: {}\n"), `f:5:7: "a" has nothing after it`},
		"null":                  {tree("      a: null\n"), `f:5:7: "a" has nothing after it`},
		"a tilde":               {tree("      a: ~\n"), `f:5:7: "a" has nothing after it`},
		"nothing in braces":     {tree("      a: {limits: , labels: {}}\n"), `f:5:11: "limits" has nothing after it`},
		"a name in braces":      {tree("      a: {limits}\n"), `f:5:11: "limits" has nothing after it`},
		"no comma": {
			tree("      a: {limits: {} labels: {}}\n"),
			`f:5:22: a comma is missing before "labels"`,
		},
		"only commas":        {tree("      a: {,}\n"), `f:5:11: a name or a value is missing before this comma`},
		"one brace too many": {"{trees: {}}}\n", `f:1:12: "}" is too much on this line`},
		"text after braces":  {tree("      a: {} b\n"), `f:5:13: "b" is too much on this line`},
		"text after quotes": {
			tree("      a: {}\n      b:\n        policy: \"x\" y\n"),
			`f:7:21: "y" is too much on this line`,
		},
		"two keys on a line": {
			tree("      a: limits: {}\n"),
			`f:5:10: one key on a line: put "limits" on the next one`,
		},
		"indented too deep":   {tree("      a: {}\n        b: {}\n"), "f:6:9: the indentation fits no line above"},
		"indented between":    {tree("        a: {}\n      b: {}\n"), "f:6:7: the indentation fits no line above"},
		"indented too little": {"  trees: {}\ntrees: {}\n", "f:2:1: the indentation fits no line above"},
		"deeper after a value": {
			tree("      a:\n        policy: strict\n          limits: {}\n"),
			"f:7:11: the indentation fits no line above",
		},
		"a text on two lines": {
			tree("      a:\n        policy: strict\n          really\n"),
			"f:6:17: a value must be on one line",
		},
		"quotes on two lines": {
			tree("      a:\n        policy: \"strict\n          really\"\n"),
			"f:6:17: a value must be on one line",
		},
		"two lines, one quote": {
			tree("      a:\n        policy: 'it''s\n          strict'\n"),
			"f:6:17: a value must be on one line",
		},
		"an unusual line break": {tree("      a: {policy: x\u2028 y}\n"), "f:5:19: a value must be on one line"},
		"no space":              {tree("      a: {limits:{cores: 1}}\n"), "f:5:18: a space is missing after the colon"},
		"a star": {
			tree("      a: {hard: [*]}\n"),
			`f:5:18: "*" cannot begin a value: put it in quotes`,
		},
		"a tab":               {"trees:\n\tt: {}\n", "f:2:1: a tab is not indentation: use blanks"},
		"a colon for a value": {tree("      a: :\n"), `f:5:10: ":" cannot begin a value`},
		"not UTF-8":           {"trees:\n  \xff: {}\n", "f:2:1: the line is not UTF-8"},
		"a zero byte":         {"trees:\n  a\x00: {}\n", "f:2:4: the character U+0000 is not text"},
		"braces within braces": {
			"trees: " + strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100),
			"nested deeper than 64 levels",
		},
		"lines deeper and deeper": {func() string {
			var text strings.Builder
			for i := range 100 {
				text.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return text.String()
		}(), "f:65:65: nested deeper than 64 levels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseTrees("f", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse answers %v, %v; want an error that says %q\n%s", got, err, test.want, test.text)
			}
			if place := (*Error)(nil); got != nil || !errors.As(err, &place) {
				t.Errorf("want nothing and an Error with its place, got %v, %v", got, err)
			}
		})
	}
}

func TestParseNamesManyProblemsAtOnce(t *testing.T) {
	var nodes strings.Builder
	for i := range 13 {
		fmt.Fprintf(&nodes, "      n%d: {limits: {cores: many}}\n", i)
	}
	_, err := parseTrees("f", []byte(tree(nodes.String())))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || !strings.HasPrefix(lines[9], "f:14:28: ") || lines[10] != "and 3 more" {
		t.Errorf("want ten problems and a count, got:\n%v", err)
	}
}

func TestParseBounds(t *testing.T) {
	many := func(n int, line string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, line+"\n", i)
		}
		return text.String()
	}
	spread := func(parents, children int) string {
		var text strings.Builder
		for i := range parents {
			fmt.Fprintf(&text, "      p%d:\n        nodes:\n%s", i, many(children, "          c%d: {}"))
		}
		return text.String()
	}
	tests := map[string]struct {
		text string
		want string
	}{
		"trees": {
			"trees:\n" + many(101, "  t%d: {resources: {c: {unit: count}}}"),
			"trees has 101 entries; 100 are allowed",
		},
		"trees fit":    {"trees:\n" + many(100, "  t%d: {resources: {c: {unit: count}}}"), ""},
		"siblings":     {tree(many(20_001, "      n%d: {}")), "nodes has 20001 entries; 20000 are allowed"},
		"siblings fit": {tree(many(20_000, "      n%d: {}")), ""},
		"nodes":        {tree(spread(10, 2000)), `tree "t" has 20010 nodes; a tree may have 20000`},
		"resources": {
			"trees:\n  t:\n    resources:\n" + many(513, "      r%d: {unit: count}"),
			"resources has 513 entries; 512 are allowed",
		},
		"resources fit": {"trees:\n  t:\n    resources:\n" + many(512, "      r%d: {unit: count}"), ""},
		"labels": {
			tree("      a:\n        labels:\n" + many(33, "          l%d: x")),
			"labels has 33 entries; 32 are allowed",
		},
		"labels fit": {tree("      a:\n        labels:\n" + many(32, "          l%d: x")), ""},
		"size":       {tree("      a: {}\n" + strings.Repeat("#", MaxSize)), "a manifest may have at most 4194304 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseTrees("f", []byte(test.text))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse says %v, want %q", err, test.want)
			}
		})
	}
}

// TestParseIsQuick holds texts that were made to keep a parser busy against a generous bound of processor time, which a
// busy machine does not change: each takes a second at most, where quadratic work would take minutes.
func TestParseIsQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes")
	}
	keys := strings.Builder{}
	for i := range 100_000 {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	for name, text := range map[string]string{
		"keys":     keys.String(),
		"braces":   strings.Repeat("{a: ", 1<<17),
		"brackets": strings.Repeat("[", 1<<17),
		"quotes":   strings.Repeat("\"", 1<<17),
		"commas":   "{" + strings.Repeat("a, ", 1<<17) + "}",
		"colons":   strings.Repeat("a: ", 1<<17),
		"dashes":   strings.Repeat("- ", 1<<17),
		"comments": strings.Repeat("#\n", 1<<17),
	} {
		before := processorTime(t)
		if _, err := parseTrees("f", []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if took := processorTime(t) - before; took > 20*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestExamples parses the manifests of the documentation, and compares the CERN example with its script.
func TestExamples(t *testing.T) {
	for _, file := range exampleFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseTrees(file, text); err != nil {
			t.Error(err)
		}
	}
}

func TestCERNExampleIsTheStartOfTheScript(t *testing.T) {
	text, err := os.ReadFile("../../examples/cern.yaml")
	if err != nil {
		t.Fatal(err)
	}
	trees, err := parseTrees("cern.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	node := func(path string, cores int64) *quoratev1.Node {
		return &quoratev1.Node{Path: path, Limits: map[string]*quoratev1.Limit{"cores": amount(cores)}}
	}
	want := []*quoratev1.Tree{{
		Name:      "cern",
		Policy:    "strict",
		Resources: []*quoratev1.Resource{{Name: "cores", Unit: count}},
		Limits:    map[string]*quoratev1.Limit{"cores": unlimited()},
		Nodes: []*quoratev1.Node{
			node("atlas", 100),
			node("atlas/operations", 80), node("atlas/operations/web", 30), node("atlas/operations/workflow", 50),
			node("atlas/physics", 20), node("atlas/physics/higgs", 0), node("atlas/physics/simulation", 10),
		},
	}}
	if diff := cmp.Diff(want, trees, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
