package boskos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/internal/manifest"
)

func TestParse(t *testing.T) {
	data, err := os.ReadFile("testdata/boskos.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{Entries: []Entry{
		{Type: "aws-account", State: "dirty", Names: []string{"account1", "account2", "us-east-1--aws-quota-slice-00"}},
		{Type: "gcp-project", State: "free", Names: []string{"project-1", "project-2.example"}},
		{
			Type: "aws-cluster", State: "dirty", MinCount: 1, MaxCount: 2, Lifespan: 48 * time.Hour,
			Needs: map[string]int64{"aws-account": 1}, HasConfig: true,
		},
		{Type: "metal-quota-slice", State: "free", MinCount: 1000, MaxCount: 1000},
		{Type: "gcp-project", State: "free", Names: []string{"project-3"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestALifespanInNanosecondsIsNoted: a number without a unit is read as Boskos reads it, which few expect.
func TestALifespanInNanosecondsIsNoted(t *testing.T) {
	for text, want := range map[string]string{"3600": "its lifespan is 3.6µs: Boskos reads a number", "1h": "", "0": ""} {
		c, err := Convert([]byte("resources: [{type: t, max-count: 1, lifespan: " + text + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(c.Notes, "\n")
		if isNoted := strings.Contains(notes, "lifespan"); isNoted != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("lifespan %s: noted %q, want %q", text, notes, want)
		}
	}
}

func TestLifespans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1000000000": time.Second,
		"\"1h\"": time.Hour,
	} {
		c, err := Parse([]byte("resources: [{type: t, max-count: 1, lifespan: " + text + "}]"))
		if err != nil || c.Entries[0].Lifespan != want {
			t.Errorf("lifespan %s is read as %v, %v; want %v", text, c, err, want)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	entry := func(keys string) string { return "resources:\n- {type: t, " + keys + "}\n" }
	tests := map[string]struct {
		text string
		want string
	}{
		"nothing":             {"", "empty config"},
		"no resources":        {"resources: []", "empty config"},
		"no list":             {"resources: {}", "line 1: resources is not a list"},
		"no entry":            {"resources: [x]", "line 1: resources[0] is not a map"},
		"no type":             {"resources:\n- names: [a]\n", "line 2: resources[0].type must be set"},
		"a number for a type": {"resources: [{type: 5, names: [a]}]", "resources[0].type is not a text"},
		"neither": {
			entry("state: free"),
			"line 2: resources[0] has no names, so its max-count must be above 0",
		},
		"names and counts": {
			entry("names: [a], max-count: 1"),
			"line 2: resources[0] has names, so it has no min-count or max-count",
		},
		"more than the most": {
			entry("min-count: 3, max-count: 2"),
			"line 2: resources[0]: min-count 3 is above max-count 2",
		},
		"a negative count": {
			entry("max-count: -1"),
			`resources[0].max-count is "-1"; it must be a whole number`,
		},
		"a huge count": {
			entry("max-count: 2147483649"),
			"resources[0].max-count is 2147483649; up to 2147483648 are read",
		},
		"an upper-case name": {entry("names: [A]"), `line 2: resources[0].names: "A" is not a name`},
		"a name with a dash": {entry("names: [a-]"), `"a-" is not a name`},
		"an underscore":      {entry("names: [a_b]"), `"a_b" is not a name`},
		"a long name":        {entry("names: [" + strings.Repeat("a", 254) + "]"), "is not a name"},
		"a name twice": {
			"resources:\n- {type: a, names: [x]}\n- {type: b, names: [y, x]}\n",
			`line 3: resources[1].names: "x" is given twice; the first is in line 2`,
		},
		"a bad lifespan": {
			entry("max-count: 1, lifespan: long"),
			`resources[0].lifespan is "long"; it must be a duration`,
		},
		"an unknown need": {
			entry("max-count: 1, needs: {u: 1}"),
			`line 2: "t" needs "u", which is not a type of this file`,
		},
		"needs of two": {
			"resources:\n- {type: p, names: [x, y, z]}\n- {type: a, max-count: 2, needs: {p: 1}}\n- {type: b, " +
				"max-count: 1, needs: {p: 2}}\n", `4 of "p" are needed if all are made that may be, and there are 3`,
		},
		"needs beyond numbers": {
			"resources:\n- {type: p, names: [x]}\n- {type: a, max-count: 2147483648, needs: {p: 2147483648}}\n- " +
				"{type: b, max-count: 2147483648, needs: {p: 2147483648}}\n",
			`are needed if all are made that may be, and there are 1`,
		},
		"a type's name": {
			"resources: [{type: a b, max-count: 1}]",
			`type "a b" is not a valid resource name`,
		},
		"names and counts, far": {
			"resources: [{type: t, names: [a]}, {type: t, max-count: 1}]",
			"an entry with names and one with counts",
		},
		"too many resources": {entry("max-count: 10001"), `type "t" has 10001 resources; a type may have 10000`},
		"a long state": {
			entry("max-count: 1, state: " + strings.Repeat("s", 64)),
			"is not a state here: up to 63 bytes",
		},
		"a lifespan backwards": {
			entry("max-count: 1, lifespan: -1h"),
			`resources[0].lifespan is "-1h"; it must be a duration`,
		},
		"a typing mistake": {
			entry("max-count: 1, quorate: {tll: 1h}"),
			"resources[0].quorate.tll is not known here",
		},
		"another one": {
			"quorate: {tenant: []}\n" + entry("max-count: 1"),
			"line 1: quorate.tenant is not known here",
		},
		"and another": {
			"quorate: {tenants: [{owner: a}]}\n" + entry("max-count: 1"),
			"quorate.tenants.owner is not known here",
		},
		"the last one": {
			entry("max-count: 1, quorate: {turns: [{form: a}]}"),
			"quorate.turns.form is not known here",
		},
		"too long a lease": {
			entry("max-count: 1, quorate: {ttl: 169h}"),
			"is 169h0m0s; a lease lasts up to 168h0m0s",
		},
		"half a turn": {
			entry("max-count: 1, quorate: {turns: [{state: a, new-state: b}]}"),
			"needs state, new-state, and after",
		},
		"two turns": {
			entry("max-count: 1, quorate: {turns: [{state: a, new-state: b, after: 1s}, {state: a, new-state: c, after: 1s}]}"),
			`two turns from the state "a"`,
		},
		"many turns": {
			entry("max-count: 1, quorate: {turns: [" + strings.Repeat("{state: a, new-state: b, after: 1s}, ", 17) + "]}"),
			"has 17 turns; up to 16",
		},
		"a tenant's path": {
			"quorate: {tenants: [{node: a//b}]}\n" + entry("max-count: 1"),
			`is "a//b"; it must be names`,
		},
		"a tenant twice": {
			"quorate: {tenants: [{node: a}, {node: a}]}\n" + entry("max-count: 1"),
			`tenant "a" is listed twice`,
		},
		"a tenant's limit": {
			"quorate: {tenants: [{node: a, limits: {u: 1}}]}\n" + entry("max-count: 1"),
			`a limit for "u", which is not a type`,
		},
		"a tenant's tree": {
			"quorate: {tenants: [{node: a, also: teams}]}\n" + entry("max-count: 1"),
			`must be a tree, a colon`,
		},
		"a pattern": {
			"quorate: {tenants: [{node: a, owners: [\"a b\"]}]}\n" + entry("max-count: 1"),
			`"a b" is not a pattern`,
		},
		"many patterns": {
			"quorate: {tenants: [{node: a, owners: [" +
				strings.Repeat(strings.Repeat("o", 256)+", ", 33) + "]}]}\n" + entry("max-count: 1"),
			"they fill 33 labels",
		},
		"a cleaner by another word": {
			"quorate: {cleaner: sometimes}\n" + entry("max-count: 1"),
			`line 1: quorate.cleaner is "sometimes"; it must be true or false`,
		},
		"new resources for the cleaner": {
			entry("max-count: 1, state: tombstone"),
			`type "t": its resources start in the state tombstone, which is for those that a cleaner removes`,
		},
		"a turn back from the cleaner": {
			entry("max-count: 1, quorate: {turns: [{state: toBeDeleted, new-state: free, after: 1s}]}"),
			`type "t" has a turn from toBeDeleted to "free"; what a cleaner removes turns to tombstone only`,
		},
		"too long a text": {strings.Repeat("#", compat.MaxSize+1), "up to 4194304 are read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Convert([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Convert answers %v, %v; want an error that says %q", c, err, test.want)
			}
		})
	}
}

// TestWhoseCleaner: resources without names wait for a cleaner, unless the file or an entry says that there is none.
func TestWhoseCleaner(t *testing.T) {
	for text, want := range map[string]string{
		"resources: [{type: a, names: [x]}, {type: b, max-count: 1}]":                                 "b",
		"resources: [{type: a, max-count: 1, quorate: {cleaner: false}}, {type: b, max-count: 1}]":    "b",
		"{quorate: {cleaner: false}, resources: [{type: a, max-count: 1}]}":                           "",
		"{quorate: {cleaner: false}, resources: [{type: a, max-count: 1, quorate: {cleaner: true}}]}": "a",
		"{quorate: {cleaner: false}, resources: [{type: a, max-count: 1, state: tombstone}]}":         "",
	} {
		c, err := Convert([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range c.Trees[0].GetResources() {
			if s := r.GetItems(); s.GetRetired() == "toBeDeleted" && s.GetRemoved() == "tombstone" {
				got += r.GetName()
			}
		}
		isNoted := strings.Contains(strings.Join(c.Notes, "\n"), "go when a cleaner releases them as tombstone")
		if got != want || isNoted != (want != "") {
			t.Errorf("%s: a cleaner for %q, want %q; notes %q", text, got, want, c.Notes)
		}
	}
}

// TestGeneratedFiles: files as OpenShift's generator writes them: a quota slice for each cluster profile, with names of
// regions, or only a number, which may be 1000 for "as many as come".
func TestGeneratedFiles(t *testing.T) {
	c, err := Convert([]byte(`resources:
- names:
  - us-east-1--aws-quota-slice-00
  - us-east-1--aws-quota-slice-01
  - us-west-2--aws-quota-slice-00
  state: free
  type: aws-quota-slice
- max-count: 1000
  min-count: 1000
  state: free
  type: metal-quota-slice
`))
	if err != nil {
		t.Fatal(err)
	}
	aws, metal := c.Trees[0].GetResources()[0].GetItems(), c.Trees[0].GetResources()[1].GetItems()
	if len(aws.GetNames()) != 3 || aws.GetNames()[2] != "us-west-2--aws-quota-slice-00" || aws.GetState() != "" {
		t.Errorf("aws-quota-slice: %v", aws)
	}
	if metal.GetMin() != 1000 || metal.GetMax() != 1000 || metal.GetLifespanMs() != 0 {
		t.Errorf("metal-quota-slice: %v", metal)
	}
}

// TestManyTypes: if there are more types than a tree can hold, they are distributed over several trees, and adding
// types moves few of them.
func TestManyTypes(t *testing.T) {
	treeOf := func(types int) map[string]string {
		var file strings.Builder
		file.WriteString("quorate: {tenants: [{node: a/b, owners: [x], limits: {t0: 1}}]}\nresources:\n")
		for n := range types {
			fmt.Fprintf(&file, "- {type: t%d, names: [n%d-1, n%d-2, n%d-3]}\n", n, n, n, n)
		}
		c, err := Convert([]byte(file.String()))
		if err != nil {
			t.Fatal(err)
		}
		trees := map[string]string{}
		for _, tree := range c.Trees {
			if nodes := tree.GetNodes(); len(nodes) != 2 || nodes[1].GetLabels()[LabelOwners] != "x" {
				t.Errorf("tree %s of %d types has the nodes %v", tree.GetName(), types, nodes)
			}
			for _, r := range tree.GetResources() {
				trees[r.GetName()] = tree.GetName()
			}
		}
		return trees
	}
	for _, types := range []int{512, 513, 900, 2000} {
		if got := treeOf(types); len(got) != types {
			t.Errorf("%d of %d types are there", len(got), types)
		}
	}
	before, moved := treeOf(600), 0
	for name, tree := range treeOf(620) {
		if earlier, known := before[name]; known && earlier != tree {
			moved++
		}
	}
	if moved > 0 {
		t.Errorf("%d types moved", moved)
	}
}

// FuzzConvert searches for files that crash the converter, or are converted to trees that cannot be written as a
// manifest.
func FuzzConvert(f *testing.F) {
	for _, file := range []string{"testdata/boskos.yaml", "testdata/tenants.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Convert(data)
		if err != nil {
			return
		}
		if _, err := manifest.Format(&manifest.Manifest{Trees: c.Trees}); err != nil {
			t.Fatalf("%v\n%v", err, c.Trees)
		}
	})
}
