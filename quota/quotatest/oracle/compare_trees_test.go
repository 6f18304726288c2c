package oracle

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// compareViews reads everything that can be read.
func (p *pair) compareViews(t *rapid.T) {
	v, o := p.ledger.Reader(), p.oracle
	counts := v.Counts()
	if counts.Trees != len(o.trees) || counts.Held != len(o.held()) || v.Revision() != o.revision {
		t.Fatalf("counts are %+v and the revision %d, want %d trees, %d held, %d", counts, v.Revision(), len(o.trees),
			len(o.held()), o.revision)
	}
	want := slices.Clone(o.history)
	slices.Reverse(want)
	got := v.Revisions(0, math.MaxInt)
	for i := range got {
		got[i].Undo, got[i].UndoPolicies, got[i].Undoable = nil, nil, false // rolling back shows whether they are right
	}
	quotatest.RequireSame(t, "history", want, got)
	policies := slices.SortedFunc(maps.Values(o.policies),
		func(a, b quota.PolicySpec) int { return strings.Compare(a.Name, b.Name) })
	quotatest.RequireSame(t, "policies", policies, v.Policies())
	arrivals := arrivalsIn(p.ledger.Snapshot())
	var summaries []quota.TreeSummary
	for _, name := range quotatest.TreeNames {
		if spec, known := o.trees[name]; known {
			summaries = append(summaries, o.summary(spec))
			p.compareTree(t, name)
			for _, path := range o.nodesOf(name) {
				place := quota.Place(name, path)
				quotatest.RequireSame(t, "order of arrival at "+place, o.arrivalsAt(name, path), arrivals[place])
			}
		}
	}
	slices.SortFunc(summaries, func(a, b quota.TreeSummary) int { return strings.Compare(a.Name, b.Name) })
	quotatest.RequireSame(t, "trees", summaries, v.Trees())
	p.compareAllocations(t)
	p.compareItems(t)
	p.compareDeadlines(t)
	p.compareEvents(t)
	p.compareQueue(t)
}

// arrivalsIn lists for each node that borrows the ids of the allocations with a claim there, by arrival.
func arrivalsIn(image *ledger.Snapshot) map[string][]string {
	places := map[uint64]string{}
	for _, tree := range image.Trees() {
		for _, n := range tree.Nodes {
			places[n.ID] = quota.Place(tree.Name, n.Spec.Path)
		}
	}
	type arrival struct {
		number    uint64
		place, id string
	}
	var all []arrival
	for a := range image.Held() {
		for i, number := range a.ArrivalSeqs {
			if number > 0 {
				all = append(all, arrival{number, places[a.Placed[i]], a.Request.ID})
			}
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.number, b.number) })
	ids := map[string][]string{}
	for _, a := range all {
		ids[a.place] = append(ids[a.place], a.id)
	}
	return ids
}

// arrivalsAt is the same of the oracle for one node.
func (o *oracle) arrivalsAt(tree, path string) []string {
	var ids []string
	for _, c := range o.borrowersAt(tree, path) {
		ids = append(ids, c.request.ID)
	}
	return ids
}

func (o *oracle) summary(spec quota.TreeSpec) quota.TreeSummary {
	return quota.TreeSummary{
		Name: spec.Name, Policy: quotatest.PolicyOf(spec, ""), Resources: spec.Resources,
		Nodes: len(o.nodesOf(spec.Name)), Claims: o.claimsIn(spec.Name, ""),
	}
}

func (p *pair) compareTree(t *rapid.T, name string) {
	want := p.oracle.trees[name]
	got, refused := p.ledger.Reader().Tree(name)
	if refused != nil {
		t.Fatal(refused)
	}
	quotatest.RequireSame(t, "tree "+name, want, got)
	var usage []quota.NodeUsage
	for _, path := range p.oracle.nodesOf(name) {
		usage = append(usage, p.oracle.usage(want, path))
	}
	query := quota.UsageQuery{Tree: name, Subtree: true, Max: 3}
	page, refused := p.ledger.Reader().Usage(query)
	nodes := page.Nodes
	for refused == nil && page.Next != nil {
		query.After = page.Next
		page, refused = p.ledger.Reader().Usage(query)
		nodes = append(nodes, page.Nodes...)
	}
	if refused != nil {
		t.Fatal(refused)
	}
	quotatest.RequireSame(t, "usage of "+name, p.withoutPools(want, usage), p.withoutPools(want, slices.Clone(nodes)))
	if len(quotatest.FindNode(want, "").Principals) > 0 || len(p.oracle.running(name, "")) > 0 {
		p.comparePrincipals(t, want)
	}
	n := nodes[quotatest.Die(t, len(nodes), "node")]
	if !p.oracle.borrows(name, n.Path) { // there more than the headroom may be granted
		p.probeHeadroom(t, name, n)
	}
}

// probeHeadroom checks that a reported headroom is available, and not one more.
func (p *pair) probeHeadroom(t *rapid.T, tree string, n quota.NodeUsage) {
	p.probe(t, tree, n, n.Resources[quotatest.Die(t, len(n.Resources), "resource")])
}

// withoutPools drops what is only probed where nodes lend to each other.
func (p *pair) withoutPools(spec quota.TreeSpec, nodes []quota.NodeUsage) []quota.NodeUsage {
	inPool := func(path string) bool { return p.oracle.pools(spec, path) }
	for i := range nodes {
		n := &nodes[i]
		n.Resources = slices.Clone(n.Resources)
		for j := range n.Resources {
			r := &n.Resources[j]
			if slices.ContainsFunc(quotatest.Upwards(n.Path), inPool) {
				r.Headroom, r.Bounded = 0, false
			}
			if inPool(n.Path) {
				r.Over, r.Borrowed, r.Lends = 0, 0, 0
			}
		}
	}
	return nodes
}

func (p *pair) probe(t *rapid.T, tree string, n quota.NodeUsage, r quota.ResourceUsage) {
	ask := func(a quota.Amount) ledger.Outcome {
		return p.ledger.Sandbox().DryRun(quota.Allocate{ID: "probe", Claims: []quota.Claim{
			{Tree: tree, Node: n.Path, Amounts: quota.Vector{{Resource: r.Resource.Name, Amount: a}}},
		}})
	}
	inFront := func(v quota.Violation) bool { return v.Kind == quota.OfQueue }
	if out := ask(r.Headroom); r.Headroom > 0 && out.Refused == nil && !out.Decision.Granted &&
		!slices.ContainsFunc(out.Decision.Violations, inFront) {
		t.Fatalf("%s has room for %d, but a claim of that is %s", n.Path, r.Headroom, out.Decision.Explain())
	}
	if out := ask(r.Headroom + 1); out.Refused == nil && out.Decision.Granted {
		t.Fatalf("%s has room for %d, but could get one more", n.Path, r.Headroom)
	}
}

func (o *oracle) usage(spec quota.TreeSpec, path string) quota.NodeUsage {
	u := quota.NodeUsage{
		Path: path, Policy: quotatest.PolicyOf(spec, path), Children: o.childrenOf(spec.Name, path),
		Applications: len(o.running(spec.Name, path)), MaxApplications: o.node(spec.Name, path).Applications,
	}
	for _, r := range spec.Resources {
		ru := quota.ResourceUsage{
			Resource: r, Set: configuredLimit(spec, path, r.Name), Effective: o.effective(spec, path, r.Name),
			Own:     o.own(spec.Name, path, r.Name),
			Subtree: quota.Amount(o.used(spec.Name, path, r.Name).Int64()), Headroom: quota.MaxAmount,
		}
		for _, up := range quotatest.Upwards(path) {
			isDefault := func(l quota.ResourceLimit) bool { return l.Resource == r.Name }
			if up != path && ru.Set.Kind == quota.Unset && !ru.HasDefault &&
				slices.ContainsFunc(o.node(spec.Name, up).Defaults, isDefault) {
				ru.HasDefault, ru.DefaultAt = true, up
			}
			used := quota.Amount(o.used(spec.Name, up, r.Name).Int64())
			ru.Headroom = max(0, min(ru.Headroom, o.ceiling(spec.Name, up, r.Name)-used))
			ru.Bounded = ru.Bounded || o.effective(spec, up, r.Name).Kind == quota.Limited
		}
		ru.Over = max(0, ru.Subtree-o.ceiling(spec.Name, path, r.Name))
		if ru.Effective.Kind == quota.Advisory {
			ru.Over = max(0, ru.Subtree-ru.Effective.Amount)
		}
		u.Resources = append(u.Resources, ru)
	}
	return u
}
