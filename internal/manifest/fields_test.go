package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// allFields is a manifest with every key there is, as Format writes it, except for moves.
const allFields = `version: 1
trees:
  queues:
    policy: capped
    forest: shop
    require-reason: true
    require-principal: true
    tenants-see: names
    labels: {team: it}
    resources: {memory: {unit: bytes}, vcore: {unit: milli}}
    limits: {memory: 1T}
    defaults: {memory: unlimited, vcore: 5}
    applications: 100
    auto-approve: {at-most: 20%, every: 30d, within-headroom: true}
    thresholds: [80%, 95%]
    principals:
      - users: [sue, bob]
        limits: {memory: 250G}
        applications: 2
        description: "example entry"
      - groups: [ops, "*"]
        limits: {memory: 0, vcore: 500m}
      - users: ["*"]
    nodes:
      dev:
        policy: borrowing
        hard: true
        labels: {team: dev}
        limits: {memory: 10G}
        defaults: {vcore: 0}
        borrow: {memory: 1G}
        lend: {memory: unlimited}
        applications: 0
        auto-approve: {at-most: 100%, every: 36h}
        thresholds: {percents: [90%], margin: 10%}
        principals:
          - groups:
              - ` + "a" + longName + `
              - ` + "b" + longName + `
`

const longName = "_name_that_does_not_fit_on_one_line_with_another_one"

func TestFieldsOfTreesAndNodes(t *testing.T) {
	got, err := parseTrees("f", []byte(allFields))
	if err != nil {
		t.Fatal(err)
	}
	want := []*quoratev1.Tree{{
		Name: "queues", Policy: "capped", Forest: "shop", RequireReason: true, RequirePrincipal: true,
		TenantsSee:   quoratev1.TenantsSee_TENANTS_SEE_NAMES,
		Labels:       map[string]string{"team": "it"},
		Resources:    []*quoratev1.Resource{{Name: "memory", Unit: octet}, {Name: "vcore", Unit: milli}},
		Limits:       map[string]*quoratev1.Limit{"memory": amount(1e12)},
		Defaults:     map[string]*quoratev1.Limit{"memory": unlimited(), "vcore": amount(5000)},
		Applications: amountLimit(100),
		AutoApprove:  &quoratev1.AutoApprove{AtMostPercent: 20, EveryMs: 30 * 24 * 3_600_000, WithinHeadroom: true},
		Thresholds:   &quoratev1.LimitThresholds{Percents: []int32{80, 95}},
		Principals: []*quoratev1.PrincipalLimit{
			{
				Users: []string{"sue", "bob"}, Limits: map[string]*quoratev1.Limit{"memory": amountLimit(250e9)},
				Applications: amountLimit(2),
				Description:  "example entry",
			},
			{
				Groups: []string{"ops", "*"},
				Limits: map[string]*quoratev1.Limit{"memory": amountLimit(0), "vcore": amountLimit(500)},
			},
			{Users: []string{"*"}},
		},
		Nodes: []*quoratev1.Node{{
			Path: "dev", Policy: "borrowing", Hard: true,
			Labels:       map[string]string{"team": "dev"},
			Limits:       map[string]*quoratev1.Limit{"memory": amount(10e9)},
			Defaults:     map[string]*quoratev1.Limit{"vcore": amount(0)},
			Borrow:       map[string]*quoratev1.Limit{"memory": amount(1e9)},
			Lend:         map[string]*quoratev1.Limit{"memory": unlimited()},
			Applications: amountLimit(0),
			AutoApprove:  &quoratev1.AutoApprove{AtMostPercent: 100, EveryMs: 36 * 3_600_000},
			Thresholds:   &quoratev1.LimitThresholds{Percents: []int32{90}, MarginPercent: 10},
			Principals:   []*quoratev1.PrincipalLimit{{Groups: []string{"a" + longName, "b" + longName}}},
		}},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	text, err := formatTrees(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(allFields, string(text)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestListsInEveryForm parses the same two thresholds and two principals in every YAML notation.
func TestListsInEveryForm(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": "thresholds: [80%, 95%]\n    principals: [{users: [a]}, {groups: ['*', b]}]\n",
		"indented": "thresholds:\n      - 80%\n      - 95%\n    principals:\n      - users: [a]\n      - " +
			"groups: [\"*\", b]\n",
		"in the key's own": "thresholds:\n    - 95%\n    - 80%\n    principals:\n    - users:\n      - a\n    - " +
			"groups:\n      - '*'\n      - b\n",
		"a line after": "thresholds:\n      -\n        80%\n      - 95%\n    principals:\n      -\n        users: " +
			"[a]\n      - groups: ['*', b]\n",
		"over several lines": "thresholds: [80%,\n     95%,]\n    principals: [\n      {users: [a]},\n {groups: " +
			"['*', b],},\n]\n",
		"with comments": "thresholds: # who\n    - 80% # she\n    # and\n    - 95%\n    principals:\n    - {users: " +
			"[a]} # one\n\n    - groups: ['*', b]\n",
	} {
		t.Run(name, func(t *testing.T) {
			trees, err := parseTrees("f", []byte("trees:\n  t:\n    "+text+"    resources: {cores: {unit: count}}\n"))
			if err != nil {
				t.Fatal(err)
			}
			want := &quoratev1.Tree{
				Name: "t", Resources: []*quoratev1.Resource{{Name: "cores", Unit: count}},
				Thresholds: &quoratev1.LimitThresholds{Percents: []int32{80, 95}},
				Principals: []*quoratev1.PrincipalLimit{{Users: []string{"a"}}, {Groups: []string{"*", "b"}}},
			}
			if diff := cmp.Diff(want, trees[0], protocmp.Transform()); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

// TestMovesAreReadAndNotWritten: they keep the order of the text, since a later one may go on from an earlier one.
func TestMovesAreReadAndNotWritten(t *testing.T) {
	trees, err := parseTrees("f", []byte("trees: {t: {resources: {c: {unit: count}}, moves: {z: y/x, a/b: z}}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []*quoratev1.NodeMove{{Node: "z", NewNode: "y/x"}, {Node: "a/b", NewNode: "z"}}
	if diff := cmp.Diff(want, trees[0].GetMoves(), protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	text, err := formatTrees(trees)
	if err != nil || strings.Contains(string(text), "moves") {
		t.Errorf("Format answers %v\n%s", err, text)
	}
}

func TestParseSaysWhatIsWrongWithFields(t *testing.T) {
	tests := map[string]struct {
		text string // the keys of a node in line 5
		want string
	}{
		"a flag":                  {`hard: "yes"`, `f:5:17: hard of node "a" is true or false, not "yes"`},
		"a flag that is a list":   {"hard: [true]", `f:5:17: hard of node "a" is true or false, not a list`},
		"a forest below the root": {"forest: x", `f:5:11: node "a" has no key "forest"`},
		"half a rule":             {"auto-approve: {every: 1d}", `needs both parts: write auto-approve: {at-most: 20%, every: 30d}`},
		"an empty rule":           {"auto-approve: {}", `auto-approve of node "a" needs both parts`},
		"a flat rule":             {"auto-approve: 20%", `auto-approve of node "a" is a map of at-most, every, within-headroom, not "20%"`},
		"a long word":             {"auto-approve: {at-most: 1%, evry: 1d}", `has no key "evry"; allowed are at-most, every, within`},
		"no percent":              {"auto-approve: {at-most: 20, every: 1d}", `"20" is not a number of percent from 1% to 100%`},
		"many percent":            {"auto-approve: {at-most: 101%, every: 1d}", `"101%" is not a number of percent from 1% to 100%`},
		"a short span":            {"auto-approve: {at-most: 1%, every: 59m}", `"59m" is too short: the minimum is 1h`},
		"a long span":             {"auto-approve: {at-most: 1%, every: 367d}", `"367d" is too long: the maximum is 8784h`},
		"no span":                 {"auto-approve: {at-most: 1%, every: 3d-1h}", `"3d-1h" is not a duration: write days, hours`},
		"another bound":           {"auto-approve: {at-most: 1%, every: 1d, within-headroom: sum}", `within-headroom of auto-approve of node "a" is true or false, not "sum"`},
		"a flat threshold":        {"thresholds: 80%", `f:5:23: thresholds of node "a" is a list such as [80%, 95%], a map such as {percents: [80%, 95%], margin: 10%}, or the word none, not "80%"`},
		"no thresholds":           {"thresholds: []", `thresholds of node "a" is a list of 1 to 4 thresholds, such as [80%, 95%]`},
		"a margin alone":          {"thresholds: {margin: 5%}", `percents of thresholds of node "a" is a list of 1 to 4 thresholds`},
		"a wide margin":           {"thresholds: {percents: [20%, 10%], margin: 10%}", `margin of thresholds of node "a": "10%" is not a number of percent from 1% to 9%`},
		"a bare threshold":        {"thresholds: [80]", `thresholds of node "a": "80" is not a number of percent from 1% to 200%`},
		"a high threshold":        {"thresholds: [201%]", `"201%" is not a number of percent from 1% to 200%`},
		"a threshold twice":       {"thresholds: [80%, 80%]", `thresholds of node "a": 80% is given twice`},
		"another word":            {"thresholds: {percents: [80%], every: 1d}", `thresholds of node "a" has no key "every"; allowed are margin, percents`},
		"advisory applications": {
			"applications: 'advisory:5'",
			`f:5:25: node "a", applications: it is a quantity or the word unlimited, not "advisory:5"`,
		},
		"some applications":   {"applications: some", `f:5:25: node "a", applications: "some" is not an amount`},
		"listed applications": {"applications: [1]", `f:5:25: node "a", applications: the value must be a quantity or the word unlimited, not a list`},
		"an unknown default": {
			"defaults: {core: 1}",
			`f:5:22: node "a" limits "core", which its tree does not register; it has cores`,
		},
		"a bad default": {
			"defaults: {cores: x}",
			`f:5:29: node "a", default of "cores": "x" is not an amount`,
		},
		"a bad borrowing": {"borrow: {cores: -1}", `f:5:27: node "a", borrowing of "cores": "-1" is negative`},
		"a bad lending": {
			"lend: {cores: [1]}",
			`f:5:25: node "a", lending of "cores": the value must be a quantity or the word unlimited, not a list`,
		},
		"one user":       {"principals: [{users: ann}]", `f:5:32: users is a list, not "ann": write it in brackets`},
		"users in a map": {"principals: [{users: {ann: {}}}]", `f:5:32: users is a list, not a map`},
		"a user twice": {
			"principals: [{users: [ann, bob, ann]}]",
			`f:5:43: users of principal 1 of node "a": "ann" is given twice; the first is in line 5`,
		},
		"an empty user":    {"principals: [{users: ['']}]", `f:5:33: users of principal 1 of node "a": a name has 1 to 256 bytes`},
		"a user in braces": {"principals: [{users: [{a: b}]}]", `f:5:33: users of principal 1 of node "a": a name has 1 to 256 bytes`},
		"a long user": {
			"principals: [{users: [" + strings.Repeat("a", 257) + "]}]",
			`f:5:33: users of principal 1 of node "a": a name has 1 to 256 bytes`,
		},
		"users without commas": {"principals: [{users: ['ann' 'bob']}]", `f:5:39: a comma is missing before "bob"`},
		"a user with a value":  {"principals: [{users: [ann: bob]}]", `f:5:33: a key in brackets has braces of its own`},
		"only commas":          {"principals: [{users: [,]}]", `f:5:33: a name or a value is missing before this comma`},
		"never closed":         {"principals: [{users: [ann}]", `f:5:`},
		"closed by a brace":    {"principals: [{users: [ann}}]", `f:5:`},
		"null in a list":       {"principals: [{users: [null]}]", `f:5:33: "null" has nothing after it`},
		"principals by name":   {"principals: {ann: {}}", `f:5:23: principals is a list, not a map`},
		"a principal as a text": {
			"principals: [ann]",
			`f:5:24: principal 1 of node "a" is a map of applications, description, groups, limits, users, not "ann"`,
		},
		"a principal's key": {
			"principals: [{user: [ann]}]",
			`f:5:25: principal 1 of node "a" has no key "user"; allowed are applications, description`,
		},
		"no names": {
			"principals: [{users: [a]}, {limits: {cores: 1}}]",
			`f:5:38: principal 2 of node "a" names no users or groups: write users: [name]`,
		},
		"empty names": {
			"principals: [{users: []}]",
			`f:5:24: principal 1 of node "a" names no users or groups`,
		},
		"an advisory principal": {
			"principals: [{users: [a], limits: {cores: 'advisory:1'}}]",
			`f:5:53: principal 1 of node "a", limit of "cores": it is a quantity or the word unlimited, not "advisory:1"`,
		},
		"a principal's amount": {
			"principals: [{users: [a], limits: {cores: x}}]",
			`f:5:53: principal 1 of node "a", limit of "cores": "x" is not an amount`,
		},
		"a principal's resource": {
			"principals: [{users: [a], limits: {core: 1}}]",
			`f:5:46: principal 1 of node "a" limits "core"`,
		},
		"a long description": {
			"principals: [{users: [a], description: " + strings.Repeat("a", 257) + "}]",
			`the description of principal 1 of node "a" must be a text of at most 256 bytes`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseTrees("f", []byte(tree("      a: {"+test.text+"}\n")))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse answers %v, %v; want an error that says %q", got, err, test.want)
			}
		})
	}
}

func TestParseSaysWhatIsWrongWithTreesAndLists(t *testing.T) {
	tests := map[string]struct {
		text string // after a tree's line 2
		want string
	}{
		"an empty forest":    {"    forest: ''\n", `f:3:13: the forest of tree "t" must be a name of at most 63 bytes`},
		"a hard root":        {"    hard: true\n", `f:3:5: tree "t" has no key "hard"`},
		"a move of the root": {"    moves: {\"\": a}\n", `f:3:13: moves: "" is not a path of a node`},
		"a move to nowhere":  {"    moves: {a: b/}\n", `f:3:16: moves: "b/" is not a path of a node`},
		"a move too deep": {
			"    moves: {a: " + strings.Repeat("n/", 16) + "n}\n",
			`n" is not a path of a node: up to 16 names`,
		},
		"a move to a map": {
			"    moves: {a: {}}\n",
			`f:3:16: "a" moves to a path, such as new/path, not to a map`,
		},
		"a move twice":         {"    moves: {a: b, a: c}\n", `f:3:19: "a" is given twice`},
		"a list after its key": {"    thresholds: - ann\n", `f:3:`},
		"nothing after a dash": {"    thresholds:\n    -\n    - ann\n", `f:4:5: "-" has nothing after it`},
		"nothing at the end":   {"    thresholds:\n    - ann\n    -\n", `f:5:5: "-" has nothing after it`},
		"two values": {
			"    thresholds:\n    - \"ann\" bob\n",
			`f:4:13: "bob" is too much on this line: a value must be on one line`,
		},
		"after brackets": {"    thresholds:\n    - [ann] bob\n", `f:4:13: "bob" is too much on this line`},
		"deeper dashes":  {"    thresholds:\n    - ann\n      - bob\n", `f:4:`},
		"dashes between": {
			"    thresholds:\n      - ann\n     - bob\n",
			`f:5:6: the indentation fits no line above`,
		},
		"a key among dashes": {
			"    thresholds:\n      - ann\n      bob: {}\n",
			`f:5:7: the indentation fits no line above`,
		},
		"a dash among keys":    {"    labels:\n      a: b\n      - c\n", `f:5:7: "-" cannot begin a key`},
		"a dash in the margin": {"- ann\n", `f:4:5: the indentation fits no line above`},
		"a list for a list": {
			"    principals:\n    - users:\n      - - ann\n",
			`f:5:9: users of principal 1 of tree "t": a name has 1 to 256 bytes`,
		},
		"a key twice in an item": {
			"    principals:\n    - users: [a]\n      users: [b]\n",
			`f:5:7: "users" is given twice; the first is in line 4`,
		},
		"an item's lines": {
			"    principals:\n    - users: [a]\n       limits: {}\n",
			`f:5:8: the indentation fits no line above`,
		},
		"brackets that stay open": {"    thresholds: [80%,\n", `f:3:17: this [ is never closed`},
		"brackets in brackets": {
			"    thresholds: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n",
			"nested deeper than 64 levels",
		},
		"dashes after dashes": {
			"    thresholds:\n    " + strings.Repeat("- ", 100) + "a\n",
			"nested deeper than 64 levels",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseTrees("f", []byte("trees:\n  t:\n"+test.text+"    resources: {cores: {unit: count}}\n"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse answers %v, %v; want an error that says %q", got, err, test.want)
			}
		})
	}
}

func TestBoundsOfLists(t *testing.T) {
	numbered := func(n int, format string) string {
		parts := make([]string, n)
		for i := range n {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, ", ")
	}
	for name, test := range map[string]struct {
		format, item string
		most         int
	}{
		"principals": {"principals: [%s]", "{users: [u%d]}", 1000},
		"users":      {"principals: [{users: [%s]}]", "u%d", 1000},
		"groups":     {"principals: [{groups: [%s]}]", "g%d", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			fits := fmt.Sprintf(test.format, numbered(test.most, test.item))
			if _, err := parseTrees("f", []byte(tree("      a: {"+fits+"}\n"))); err != nil {
				t.Error(err)
			}
			want := fmt.Sprintf("%s has %d entries; %d are allowed", name, test.most+1, test.most)
			more := fmt.Sprintf(test.format, numbered(test.most+1, test.item))
			if _, err := parseTrees("f", []byte(tree("      a: {"+more+"}\n"))); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("Parse says %v, want %q", err, want)
			}
		})
	}
	moves := "trees: {t: {resources: {c: {unit: count}}, moves: {" + numbered(1001, "n%[1]d: m%[1]d") + "}}}"
	if _, err := parseTrees("f", []byte(moves)); err == nil || !strings.Contains(err.Error(), "1000 are allowed") {
		t.Errorf("Parse of 1001 moves says %v", err)
	}
}
