package access_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/access/accesstest"
	"github.com/quorate/quorate/internal/verify"
)

// forest is a random tree twice: for the oracle, and compiled.
type forest struct {
	accesstest.Tree
	roles   access.Roles
	tables  []*access.Table
	cluster *access.Table
}

func drawForest(t *rapid.T) *forest {
	f := &forest{}
	f.roles, _ = access.NewRoles(accesstest.CustomRoles())
	f.Verbs = map[string]access.Verbs{}
	for _, r := range append(access.BuiltinRoles(), f.roles.Custom()...) {
		f.Verbs[r.Name] = r.Verbs
	}
	f.Cluster = accesstest.Bindings(t, 2, f.roles, access.ClusterScope)
	f.cluster = access.Compile(f.Cluster, f.roles, access.ClusterScope)
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		parent := -1
		if i > 0 {
			parent = rapid.IntRange(0, i-1).Draw(t, "parent")
		}
		f.Parents = append(f.Parents, parent)
		f.Bindings = append(f.Bindings, accesstest.Bindings(t, 4, f.roles, access.NodeScope))
		f.tables = append(f.tables, access.Compile(f.Bindings[i], f.roles, access.NodeScope))
	}
	return f
}

// path is what the ledger would pass: the tables from a node up to the root, and the cluster.
func (f *forest) path(node int) access.Path {
	var p access.Path
	for ; node >= 0; node = f.Parents[node] {
		p = append(p, f.tables[node])
	}
	return append(p, f.cluster)
}

// move chooses a parent that is not below the node.
func (f *forest) move(t *rapid.T) {
	node := rapid.IntRange(0, len(f.Parents)-1).Draw(t, "moved")
	to := rapid.IntRange(0, len(f.Parents)-1).Draw(t, "to")
	for up := to; up >= 0; up = f.Parents[up] {
		if up == node {
			return
		}
	}
	f.Parents[node] = to
}

// TestDecisionsAgainstOracle compares verbs and ceilings everywhere in random trees with the oracle, before and after
// moves.
func TestDecisionsAgainstOracle(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		f := drawForest(t)
		for range 3 {
			for range 8 {
				f.compare(t, accesstest.Caller(t))
			}
			f.move(t)
		}
	})
}

func (f *forest) compare(t *rapid.T, c access.Caller) {
	ceiling := access.AllVerbs
	if c.Kind == access.AccountCaller {
		ceiling = access.Verbs(rapid.Uint64().Draw(t, "ceiling")) | access.Verbs(rapid.Uint64().Draw(t, "more"))
		ceiling &= access.AllVerbs
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	id := access.NewIdentity(&c, ceiling)
	wall := rapid.Int64Range(0, 10).Draw(t, "wall")
	for node := -1; node < len(f.Parents); node++ {
		want, path := f.Rights(c, ceiling, node, wall), f.path(node)
		if got := access.RightsAt(id, wall, path); !equalRights(got, want) {
			t.Fatalf("%v at node %d, time %d: %+v, want %+v", c, node, wall, got, want)
		}
		if got := access.VerbsAt(id, wall, path); got != want.Verbs {
			t.Fatalf("%v at node %d: verbs %s, want %s", c, node, got, want.Verbs)
		}
		for v := range access.AllVerbs.All() {
			if access.Allows(id, v, wall, path) != want.Verbs.Has(v) {
				t.Fatalf("%v at node %d: %s is %v, want %v", c, node, v, !want.Verbs.Has(v), want.Verbs.Has(v))
			}
		}
	}
}

// equalRights takes nil lists for empty ones.
func equalRights(a, b access.Rights) bool {
	return a.Verbs == b.Verbs && a.MaxPriority == b.MaxPriority && a.Unpreemptable == b.Unpreemptable &&
		a.HoldAs.Any == b.HoldAs.Any && slices.Equal(a.HoldAs.Names, b.HoldAs.Names)
}

// TestNoEscalation checks what Covers promises: a caller that adds a covered binding for itself gains nothing, now or
// later, and one that adds another binding gains something. Callers with access.manage are excepted.
func TestNoEscalation(t *testing.T) {
	covered, missed := 0, 0
	verify.Check(t, func(t *rapid.T) {
		f := drawForest(t)
		for range 5 {
			c := accesstest.Caller(t)
			if c.User == "" {
				continue
			}
			node := rapid.IntRange(0, len(f.Parents)-1).Draw(t, "node")
			wall := rapid.Int64Range(0, 10).Draw(t, "wall")
			for _, b := range accesstest.Bindings(t, 10, f.roles, access.NodeScope) {
				switch f.checkCover(t, c, node, wall, b) {
				case 1:
					covered++
				case -1:
					missed++
				}
			}
		}
	})
	if covered == 0 || missed == 0 {
		t.Errorf("%d bindings were covered, %d were not", covered, missed)
	}
}

// checkCover returns 1 if the caller covers the binding for itself, -1 if it does not, and 0 if nothing was asked.
func (f *forest) checkCover(t *rapid.T, c access.Caller, node int, wall int64, b access.Binding) int {
	id := access.NewIdentity(&c, access.AllVerbs)
	last := int64(math.MaxInt64 - 1)
	if b.Until != 0 {
		last = b.Until - 1
	}
	if last < wall || access.Allows(id, access.AccessManage, last, access.Path{f.cluster}) {
		return 0
	}
	if b.To = []access.Subject{{Kind: access.User, Name: c.User}}; c.Kind == access.AccountCaller {
		b.To = []access.Subject{{Kind: access.AccountSubject, Name: strings.TrimPrefix(c.User, "account/")}}
	}
	role, _ := f.roles.Find(b.Role)
	missing := access.Covers(id, wall, f.path(node), access.NodeScope, role, b)
	with := *f
	with.Bindings = slices.Clone(f.Bindings)
	with.Bindings[node] = append(slices.Clone(f.Bindings[node]), b)
	gains := false
	for later := wall; later <= 11; later++ {
		for n := range f.Parents {
			gains = gains || !equalRights(
				with.Rights(c, access.AllVerbs, n, later), f.Rights(c, access.AllVerbs, n, later))
		}
	}
	if gains == missing.IsEmpty() {
		t.Fatalf("%v at node %d, time %d gains %v by %+v; missing is %q", c, node, wall, gains, b, missing.String())
	}
	if missing.IsEmpty() {
		return 1
	}
	return -1
}

// TestAddedBindings checks that before and the added bindings together give what after gives, to each caller.
func TestAddedBindings(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		f := drawForest(t)
		before, after := f.Bindings[0], accesstest.Bindings(t, 6, f.roles, access.NodeScope)
		after = access.CanonicalBindings(append(after, before[:len(before)/2]...))
		union := append(slices.Clone(before), access.AddedBindings(before, after)...)
		all := append(slices.Clone(before), after...)
		for range 8 {
			c := accesstest.Caller(t)
			f.Bindings[0] = union
			got := f.Rights(c, access.AllVerbs, 0, 0)
			f.Bindings[0] = all
			if want := f.Rights(c, access.AllVerbs, 0, 0); !equalRights(got, want) {
				t.Fatalf("%v has %+v, want %+v", c, got, want)
			}
		}
		if added := access.AddedBindings(after, after); added != nil {
			t.Fatalf("%+v is added to itself", added)
		}
	})
}

// TestCanonicalBindings checks that the canonical form does not depend on the order, and is its own canonical form.
func TestCanonicalBindings(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		f := drawForest(t)
		list := f.Bindings[0]
		shuffled := rapid.Permutation(append(slices.Clone(list), list...)).Draw(t, "order")
		for i := range shuffled {
			shuffled[i].To = append(slices.Clone(shuffled[i].To), shuffled[i].To[0])
		}
		if got := access.CanonicalBindings(shuffled); len(list) > 0 && !reflect.DeepEqual(got, list) {
			t.Fatalf("%+v, want %+v", got, list)
		}
	})
}
