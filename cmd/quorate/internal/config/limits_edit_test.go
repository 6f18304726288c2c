package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

func amount(n int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: n}}
}

func unset() *quoratev1.Limit { return &quoratev1.Limit{Value: &quoratev1.Limit_Unset{Unset: true}} }

func unlimited() *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
}

// entriesText writes entries as "users a b, groups c: cores 5, applications 2; ...".
func entriesText(entries []*quoratev1.PrincipalLimit) string {
	var list []string
	for _, e := range entries {
		var names []string
		if len(e.GetUsers()) > 0 {
			names = append(names, "users "+strings.Join(e.GetUsers(), " "))
		}
		if len(e.GetGroups()) > 0 {
			names = append(names, "groups "+strings.Join(e.GetGroups(), " "))
		}
		list = append(list, strings.Join(names, ", ")+": "+ruleText(e))
	}
	return strings.Join(list, "; ")
}

func ruleText(e *quoratev1.PrincipalLimit) string {
	text := fmt.Sprintf("%v %d", manifest.Bounds(e.GetLimits()), e.GetApplications().GetAmount())
	return strings.TrimSpace(text + " " + e.GetDescription())
}

// TestEditPrincipals: what becomes of entries, also of those that name several.
func TestEditPrincipals(t *testing.T) {
	t.Parallel()
	entry := func(users, groups string, cores int64) *quoratev1.PrincipalLimit {
		return &quoratev1.PrincipalLimit{
			Users: strings.Fields(users), Groups: strings.Fields(groups),
			Limits: map[string]*quoratev1.Limit{"cores": amount(cores)},
		}
	}
	five := map[string]*quoratev1.Limit{"cores": amount(5)}
	tests := map[string]struct {
		entries    []*quoratev1.PrincipalLimit
		edit       limitEdit
		want, note string
	}{
		"the first entry": {
			edit: limitEdit{holder: holderName{userHolder, "ada"}, limits: five, applications: amount(2)},
			want: "users ada: map[cores:5] 2",
		},
		"its own entry": {
			entries: []*quoratev1.PrincipalLimit{entry("ada", "", 1), entry("*", "", 9)},
			edit:    limitEdit{holder: holderName{userHolder, "ada"}, limits: five},
			want:    "users ada: map[cores:5] 0; users *: map[cores:9] 0",
		},
		"one of several users": {
			entries: []*quoratev1.PrincipalLimit{entry("ada bob cem", "ops", 1)},
			edit:    limitEdit{holder: holderName{userHolder, "bob"}, limits: five},
			want:    "users bob: map[cores:5] 0; users ada cem, groups ops: map[cores:1] 0",
		},
		"one of several groups, whose order counts": {
			entries: []*quoratev1.PrincipalLimit{entry("ada", "a b c", 1)},
			edit:    limitEdit{holder: holderName{groupHolder, "b"}, limits: five},
			want:    "users ada, groups a: map[cores:1] 0; groups b: map[cores:5] 0; groups c: map[cores:1] 0",
		},
		"a new group behind those that are named": {
			entries: []*quoratev1.PrincipalLimit{entry("", "a *", 1)},
			edit:    limitEdit{holder: holderName{groupHolder, "b"}, limits: five},
			want:    "groups a: map[cores:1] 0; groups b: map[cores:5] 0; groups *: map[cores:1] 0",
		},
		"a new user starts with the other limits of the wildcard": {
			entries: []*quoratev1.PrincipalLimit{
				{
					Users: []string{"*"}, Limits: map[string]*quoratev1.Limit{"gpus": amount(2), "cores": amount(1)},
					Applications: amount(3), Description: "all",
				},
			},
			edit: limitEdit{holder: holderName{userHolder, "ada"}, limits: five},
			want: "users ada: map[cores:5 gpus:2] 3; users *: map[cores:1 gpus:2] 3 all",
			note: "starts with the other limits of user *",
		},
		"a new wildcard comes last": {
			entries: []*quoratev1.PrincipalLimit{entry("ada", "", 1)},
			edit:    limitEdit{holder: holderName{userHolder, "*"}, limits: five},
			want:    "users ada: map[cores:1] 0; users *: map[cores:5] 0",
		},
		"the wildcard among others stays the last": {
			entries: []*quoratev1.PrincipalLimit{entry("ada *", "ops", 1)},
			edit:    limitEdit{holder: holderName{userHolder, "*"}, limits: five},
			want:    "users ada, groups ops: map[cores:1] 0; users *: map[cores:5] 0",
		},
		"the last limit is removed": {
			entries: []*quoratev1.PrincipalLimit{entry("ada", "", 1), entry("bob *", "", 1)},
			edit:    limitEdit{holder: holderName{userHolder, "ada"}, limits: map[string]*quoratev1.Limit{"cores": unset()}},
			want:    "users bob *: map[cores:1] 0",
			note:    "is not named here any more, so the limits of user * apply",
		},
		"the last limit of one of several": {
			entries: []*quoratev1.PrincipalLimit{entry("ada bob", "", 1)},
			edit:    limitEdit{holder: holderName{userHolder, "ada"}, limits: map[string]*quoratev1.Limit{"cores": unlimited()}},
			want:    "users bob: map[cores:1] 0",
		},
		"nothing of its own to remove": {
			entries: []*quoratev1.PrincipalLimit{entry("*", "", 1)},
			edit:    limitEdit{holder: holderName{userHolder, "ada"}, limits: map[string]*quoratev1.Limit{"cores": unset()}},
			want:    "users *: map[cores:1] 0",
		},
		"the same limit again splits nothing": {
			entries: []*quoratev1.PrincipalLimit{entry("ada bob", "", 5)},
			edit:    limitEdit{holder: holderName{userHolder, "bob"}, limits: five},
			want:    "users ada bob: map[cores:5] 0",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, note, err := test.edit.editPrincipals(test.entries)
			if err != nil || entriesText(got) != test.want {
				t.Errorf("got %s, %v, want %s", entriesText(got), err, test.want)
			}
			if (test.note == "") != (note == "") || !strings.Contains(note, test.note) {
				t.Errorf("the note is %q, want %q", note, test.note)
			}
		})
	}
}

// TestUnlimitedBesideWildcard: an entry without limits cannot exist, so that the limits of the wildcard would apply,
// which is the opposite of what is wanted.
func TestUnlimitedBesideWildcard(t *testing.T) {
	t.Parallel()
	entries := []*quoratev1.PrincipalLimit{{Users: []string{"*"}, Limits: map[string]*quoratev1.Limit{"cores": amount(1)}}}
	edit := limitEdit{
		holder: holderName{userHolder, "ada"}, limits: map[string]*quoratev1.Limit{"cores": unlimited()},
	}
	if got, _, err := edit.editPrincipals(entries); err == nil || !strings.Contains(err.Error(), "at least one limit") {
		t.Errorf("got %s, %v, want a refusal", entriesText(got), err)
	}
}

// TestEditLeavesOthers: whatever the entries are, a change of one name leaves the limits of all other names and the
// order of the other groups as they are, and the wildcards last.
func TestEditLeavesOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		holder := holderName{
			kind: rapid.SampledFrom([]holderKind{userHolder, groupHolder}).Draw(t, "kind"),
			name: rapid.SampledFrom([]string{"a", "b", "c", "new", "*"}).Draw(t, "name"),
		}
		edit := limitEdit{holder: holder, limits: map[string]*quoratev1.Limit{
			"cores": rapid.SampledFrom([]*quoratev1.Limit{amount(7), unset(), amount(3)}).Draw(t, "limit"),
		}}
		before := entriesText(entries)
		after, _, err := edit.editPrincipals(entries)
		if err != nil {
			t.Fatal(err)
		}
		if entriesText(entries) != before {
			t.Fatal("the entries that were passed have changed")
		}
		for _, kind := range []holderKind{userHolder, groupHolder} {
			rulesBefore, rulesAfter := namedRules(kind, entries), namedRules(kind, after)
			if kind == holder.kind {
				rulesBefore, rulesAfter = withoutName(rulesBefore, holder.name), withoutName(rulesAfter, holder.name)
			}
			if kind == userHolder {
				slices.Sort(rulesBefore)
				slices.Sort(rulesAfter)
			}
			if !slices.Equal(rulesBefore, rulesAfter) {
				t.Fatalf("%s of %v: %s became %s", kind, holder, before, entriesText(after))
			}
			checkWildcardLast(t, kind, after)
		}
	})
}

// drawEntries are entries as the ledger accepts them.
func drawEntries(t *rapid.T) []*quoratev1.PrincipalLimit {
	users := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "users")
	groups := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "groups")
	users, groups = append(users, "*"), append(groups, "*")
	var entries []*quoratev1.PrincipalLimit
	for i := 0; len(users)+len(groups) > 0 && i < 5; i++ {
		n, m := rapid.IntRange(0, len(users)).Draw(t, "n"), rapid.IntRange(0, len(groups)).Draw(t, "m")
		if n+m > 0 {
			entries = append(entries, &quoratev1.PrincipalLimit{
				Users: users[:n], Groups: groups[:m], Limits: map[string]*quoratev1.Limit{"cores": amount(int64(i))},
			})
		}
		users, groups = users[n:], groups[m:]
	}
	return entries
}

// namedRules are the names of one kind with their limits, in the order of the configuration.
func namedRules(kind holderKind, entries []*quoratev1.PrincipalLimit) []string {
	var list []string
	for _, e := range entries {
		for _, name := range (holderName{kind: kind}).names(e) {
			list = append(list, name+": "+ruleText(e))
		}
	}
	return list
}

func withoutName(rules []string, name string) []string {
	return slices.DeleteFunc(rules, func(rule string) bool { return strings.HasPrefix(rule, name+": ") })
}

func checkWildcardLast(t *rapid.T, kind holderKind, entries []*quoratev1.PrincipalLimit) {
	names := namedRules(kind, entries)
	i := slices.IndexFunc(names, func(rule string) bool { return strings.HasPrefix(rule, "*: ") })
	if i >= 0 && i != len(names)-1 {
		t.Fatalf("the wildcard is not the last of the %ss: %s", kind, entriesText(entries))
	}
}

// TestEditText: limits of the root and of other nodes, and resources that the text does not name yet.
func TestEditText(t *testing.T) {
	t.Parallel()
	units := cli.Units{"t": {"cores": quoratev1.Unit_UNIT_COUNT, "ram": quoratev1.Unit_UNIT_BYTES}}
	text := &quoratev1.Tree{
		Name: "t", Resources: []*quoratev1.Resource{{Name: "cores"}}, Nodes: []*quoratev1.Node{{Path: "a"}},
	}
	edit := limitEdit{
		limits: map[string]*quoratev1.Limit{"ram": amount(5), "cores": unset()}, applications: amount(3),
	}
	for _, at := range []cli.Place{cli.PlaceOf("t", ""), cli.PlaceOf("t", "a")} {
		if _, err := edit.edit(text, at, units); err != nil {
			t.Fatal(err)
		}
		n, err := limitsAt(text, at)
		if err != nil || (*n.applications).GetAmount() != 3 || len(*n.limits) != 1 || (*n.limits)["ram"].GetAmount() != 5 {
			t.Errorf("%s has %v, %v", at, text, err)
		}
	}
	if r := text.GetResources(); len(r) != 2 || r[1].GetName() != "ram" || r[1].GetUnit() != quoratev1.Unit_UNIT_BYTES {
		t.Errorf("the resources are %v", r)
	}
	if _, err := edit.edit(text, cli.PlaceOf("t", "b"), units); err == nil {
		t.Error("a text without the node is edited")
	}
}

// TestAdvisoryLimitsAreOfNodes: the limits of a user are not advisory; they would be removed silently.
func TestAdvisoryLimitsAreOfNodes(t *testing.T) {
	limits := map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Advisory{Advisory: 1}}}
	if err := (&limitEdit{limits: limits}).checkAdvisory(); err != nil {
		t.Errorf("of a node: %v", err)
	}
	err := (&limitEdit{holder: holderName{userHolder, "ada"}, limits: limits}).checkAdvisory()
	if err == nil || !strings.Contains(err.Error(), "only limits of nodes can be advisory") {
		t.Errorf("of a user: %v", err)
	}
}
