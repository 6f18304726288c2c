package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/internal/access"
)

func TestFormat(t *testing.T) {
	trees := []*quoratev1.Tree{
		{
			Name:      "yes",
			Resources: []*quoratev1.Resource{{Name: "mem", Unit: octet}, {Name: "cpu", Unit: milli}},
			Limits:    map[string]*quoratev1.Limit{"mem": amount(16 << 30), "cpu": amount(2500)},
		},
		{
			Name:      "cern",
			Policy:    "strict",
			Resources: []*quoratev1.Resource{{Name: "cores"}},
			Limits:    map[string]*quoratev1.Limit{"cores": unlimited()},
			Labels:    map[string]string{"owner": "no", "note": "a: b\n", "link": strings.Repeat("x", 80)},
			Nodes: []*quoratev1.Node{
				{Path: "atlas/physics", Limits: map[string]*quoratev1.Limit{"cores": amount(0)}},
				{Path: "atlas-old"},
				{Path: "atlas", Policy: "open"},
				{Path: "007"},
			},
		},
	}
	want := `version: 1
trees:
  cern:
    policy: strict
    labels:
      link: ` + strings.Repeat("x", 80) + `
      note: "a: b\n"
      owner: "no"
    resources: {cores: {unit: count}}
    limits: {cores: unlimited}
    nodes:
      "007": {}
      atlas:
        policy: open
        nodes:
          physics: {limits: {cores: 0}}
      atlas-old: {}
  "yes":
    resources: {cpu: {unit: milli}, mem: {unit: bytes}}
    limits: {cpu: 2500m, mem: 16Gi}
`
	got, err := formatTrees(trees)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestFormatOfNothing(t *testing.T) {
	got, err := formatTrees(nil)
	if err != nil || string(got) != "version: 1\ntrees: {}\n" {
		t.Errorf("Format(nil) = %q, %v", got, err)
	}
}

func TestFormatRefuses(t *testing.T) {
	cores := []*quoratev1.Resource{{Name: "cores", Unit: count}}
	unset := &quoratev1.Limit{Value: &quoratev1.Limit_Unset{Unset: true}}
	nodes := func(paths ...string) *quoratev1.Tree {
		t := &quoratev1.Tree{Name: "t", Resources: cores}
		for _, p := range paths {
			t.Nodes = append(t.Nodes, &quoratev1.Node{Path: p})
		}
		return t
	}
	tests := map[string]struct {
		tree *quoratev1.Tree
		want string
	}{
		"no parent":        {nodes("a/b"), `node "a/b" has no parent: "a" is not listed`},
		"a node twice":     {nodes("a", "a"), `node "a" is listed twice`},
		"a leading slash":  {nodes("/a"), "has no parent"},
		"a trailing slash": {nodes("a", "a/"), "is not a valid node name"},
		"an empty path":    {nodes(""), "listed twice"},
		"no name":          {&quoratev1.Tree{Resources: cores}, `"" is not a valid tree name`},
		"no resource":      {&quoratev1.Tree{Name: "t"}, "registers no resource"},
		"a resource twice": {&quoratev1.Tree{Name: "t", Resources: append(cores, cores...)}, "registered twice"},
		"an unknown resource": {
			&quoratev1.Tree{Name: "t", Resources: cores, Limits: map[string]*quoratev1.Limit{"x": amount(1)}},
			`limits "x", which is not registered`,
		},
		"a negative limit": {
			&quoratev1.Tree{Name: "t", Resources: cores, Limits: map[string]*quoratev1.Limit{"cores": amount(-1)}},
			"negative",
		},
		"too large a limit": {
			&quoratev1.Tree{
				Name: "t", Resources: cores,
				Limits: map[string]*quoratev1.Limit{"cores": amount(quantity.Max + 1)},
			}, "too large",
		},
		"an unset limit": {
			&quoratev1.Tree{Name: "t", Resources: cores, Limits: map[string]*quoratev1.Limit{"cores": unset}},
			"a resource without a limit is unset",
		},
		"not UTF-8": {
			&quoratev1.Tree{Name: "t", Resources: cores, Labels: map[string]string{"x": "\xff"}}, "not UTF-8",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := formatTrees([]*quoratev1.Tree{test.tree})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Format answers %q, %v; want an error that says %q", text, err, test.want)
			}
		})
	}
}

// notTotals are the values that a manifest keeps: totals are written by leaving out the key.
var notTotals = []quoratev1.TenantsSee{
	quoratev1.TenantsSee_TENANTS_SEE_UNSPECIFIED, quoratev1.TenantsSee_TENANTS_SEE_NAMES,
	quoratev1.TenantsSee_TENANTS_SEE_NOTHING,
}

// TestFormatIsStable: a formatted manifest parses to the same trees and is formatted equally again.
func TestFormatIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		assertRoundTrip(t, rapid.SliceOfNDistinct(trees(), 0, 3, (*quoratev1.Tree).GetName).Draw(t, "trees"))
	})
	for _, file := range exampleFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		trees, err := parseTrees(file, text)
		if err != nil {
			t.Fatal(err)
		}
		assertRoundTrip(t, trees)
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func assertRoundTrip(t failer, trees []*quoratev1.Tree) {
	t.Helper()
	text, err := formatTrees(trees)
	if err != nil {
		t.Fatalf("Format: %v", err)
	}
	again, err := parseTrees("again", text)
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	second, err := formatTrees(again)
	if err != nil {
		t.Fatalf("Format again: %v", err)
	}
	if diff := cmp.Diff(string(text), string(second)); diff != "" {
		t.Fatalf("first (-), second (+):\n%s", diff)
	}
	for _, tree := range trees {
		found := false
		for _, other := range again {
			found = found || proto.Equal(sorted(tree), sorted(other))
		}
		if !found {
			t.Fatalf("%v is not among what came back:\n%s", tree, cmp.Diff(trees, again, protocmp.Transform()))
		}
	}
}

func exampleFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	return files
}

func sorted(t *quoratev1.Tree) *quoratev1.Tree {
	c := proto.CloneOf(t)
	c.Bindings = canonicalMessages(c.GetBindings())
	for _, n := range c.GetNodes() {
		n.Bindings = canonicalMessages(n.GetBindings())
	}
	slices.SortFunc(c.GetNodes(), func(a, b *quoratev1.Node) int { return strings.Compare(a.GetPath(), b.GetPath()) })
	for _, r := range c.GetResources() {
		slices.Sort(r.GetItems().GetNames())
		slices.SortFunc(r.GetItems().GetTurns(), byState)
	}
	slices.SortFunc(c.GetResources(), func(a, b *quoratev1.Resource) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
	return c
}

// trees draws trees of every shape that the API allows, in any order.
func trees() *rapid.Generator[*quoratev1.Tree] {
	return rapid.Custom(func(t *rapid.T) *quoratev1.Tree {
		tree := &quoratev1.Tree{
			Name:   nodeNames().Draw(t, "name"),
			Policy: rapid.SampledFrom([]string{"", "open", "strict", "no", "a policy: new"}).Draw(t, "policy"),
			Labels: labels().Draw(t, "labels"),

			Forest:           rapid.SampledFrom([]string{"", "shop", "no", "the forest: 1"}).Draw(t, "forest"),
			RequireReason:    rapid.Bool().Draw(t, "require-reason"),
			RequirePrincipal: rapid.Bool().Draw(t, "require-principal"),
			Applications:     applications().Draw(t, "applications"),
			Bindings:         bindingLists(access.NodeScope, access.Roles{}).Draw(t, "bindings"),
			Leases:           leaseSettings().Draw(t, "leases"),
			Queueing:         queueingWords().Draw(t, "queueing"),
			OvertakeMs:       spans(maxOvertake.Milliseconds()).Draw(t, "overtake"),
			TenantsSee:       rapid.SampledFrom(notTotals).Draw(t, "tenants see"),
		}
		units := map[string]quoratev1.Unit{}
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_./-]{0,62}`), 1, 4,
			rapid.ID).Draw(t, "resources") {
			units[name] = rapid.SampledFrom(
				[]quoratev1.Unit{count, milli, octet, quoratev1.Unit_UNIT_ITEMS}).Draw(t, "unit")
			r := &quoratev1.Resource{Name: name, Unit: units[name]}
			if r.GetUnit() == quoratev1.Unit_UNIT_ITEMS {
				r.Items = itemSpecs().Draw(t, "items")
			}
			tree.Resources = append(tree.Resources, r)
		}
		tree.Limits = limits(units).Draw(t, "limits")
		tree.Defaults = limits(units).Draw(t, "defaults")
		tree.Principals = rapid.SliceOfN(principals(units), 0, 3).Draw(t, "principals")
		paths := []string{""}
		for _, name := range rapid.SliceOfNDistinct(nodeNames(), 0, 12, rapid.ID).Draw(t, "nodes") {
			parent := rapid.SampledFrom(paths).Draw(t, "parent")
			path := strings.TrimPrefix(parent+"/"+name, "/")
			paths = append(paths, path)
			tree.Nodes = append(tree.Nodes, &quoratev1.Node{
				Path:   path,
				Policy: rapid.SampledFrom([]string{"", "open", "strict"}).Draw(t, "policy"),
				Limits: limits(units).Draw(t, "limits"),
				Labels: labels().Draw(t, "labels"),

				Hard:         rapid.Bool().Draw(t, "hard"),
				Defaults:     limits(units).Draw(t, "defaults"),
				Borrow:       limits(units).Draw(t, "borrow"),
				Lend:         limits(units).Draw(t, "lend"),
				Applications: applications().Draw(t, "applications"),
				Bindings:     bindingLists(access.NodeScope, access.Roles{}).Draw(t, "bindings"),
				Principals:   rapid.SliceOfN(principals(units), 0, 2).Draw(t, "principals"),
				Queueing:     queueingWords().Draw(t, "queueing"),
			})
		}
		tree.Nodes = rapid.Permutation(tree.GetNodes()).Draw(t, "order")
		return tree
	})
}

func applications() *rapid.Generator[*quoratev1.Limit] {
	return rapid.SampledFrom([]*quoratev1.Limit{
		nil, amountLimit(0), amountLimit(1), amountLimit(quantity.Max),
		{Value: &quoratev1.Limit_Unlimited{Unlimited: true}},
	})
}

func amountLimit(amount int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}
}

func names(fewest, most int) *rapid.Generator[[]string] {
	return rapid.SliceOfNDistinct(texts(maxText).Filter(func(s string) bool { return s != "" }), fewest, most, rapid.ID)
}

func principals(units map[string]quoratev1.Unit) *rapid.Generator[*quoratev1.PrincipalLimit] {
	return rapid.Custom(func(t *rapid.T) *quoratev1.PrincipalLimit {
		fewest := rapid.IntRange(0, 1).Draw(t, "users or groups")
		limit := &quoratev1.PrincipalLimit{
			Users:        names(fewest, 3).Draw(t, "users"),
			Groups:       names(1-fewest, 3).Draw(t, "groups"),
			Applications: applications().Draw(t, "applications"),
			Description:  texts(maxText).Draw(t, "description"),
		}
		for name := range units {
			if rapid.Bool().Draw(t, "limited") {
				if limit.Limits == nil {
					limit.Limits = map[string]*quoratev1.Limit{}
				}
				limit.Limits[name] = amountLimit(rapid.Int64Range(0, quantity.Max).Draw(t, "amount"))
			}
		}
		return limit
	})
}

func nodeNames() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}`),
		rapid.SampledFrom([]string{"no", "on", "null", "true", "1e3", "0x10", "007", "1_000", "y", "inf"}),
	)
}

// texts draws free texts, including those that YAML would misread without quotes.
func texts(most int) *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(0, most/4, most),
		rapid.SampledFrom(
			[]string{
				"", "null", "- a", "-", "*", "[a]", "a: b", "#", "{}", "'", "\"", "\n", "a\r\n b", "\u2028",
				"\ufeff", "&x", "|",
			}),
	)
}

func labels() *rapid.Generator[map[string]string] {
	return rapid.Custom(func(t *rapid.T) map[string]string {
		drawn := rapid.MapOfN(texts(maxLabelKey).Filter(func(s string) bool { return s != "" }), texts(maxText), 0,
			4).Draw(t, "labels")
		if len(drawn) == 0 {
			return nil
		}
		return drawn
	})
}

func limits(units map[string]quoratev1.Unit) *rapid.Generator[map[string]*quoratev1.Limit] {
	return rapid.Custom(func(t *rapid.T) map[string]*quoratev1.Limit {
		var drawn map[string]*quoratev1.Limit
		for name := range units {
			limit := rapid.SampledFrom([]*quoratev1.Limit{
				nil, unlimited(), amount(0), amount(rapid.Int64Range(0, quantity.Max).Draw(t, "amount")),
				{Value: &quoratev1.Limit_Advisory{Advisory: rapid.Int64Range(0, quantity.Max).Draw(t, "advisory")}},
			}).Draw(t, "limit")
			if limit == nil {
				continue
			}
			if drawn == nil {
				drawn = map[string]*quoratev1.Limit{}
			}
			drawn[name] = limit
		}
		return drawn
	})
}
