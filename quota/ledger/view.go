package ledger

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// View is the read-only face of a ledger. It is valid only as long as whoever lent it says; everything that it answers
// is the reader's own copy, but for specifications and histories, which are never changed in place.
type View struct{ ledger *Ledger }

// View lends the ledger for reading.
func (l *Ledger) View() View { return View{l} }

// Now is ledger time.
func (v View) Now() quota.Instant { return v.ledger.now.At }

// Revision is the number of the present configuration.
func (v View) Revision() uint64 { return v.ledger.history.revision }

// TombstoneSpan is how long an ended allocation keeps its id.
func (v View) TombstoneSpan() quota.Span { return v.ledger.bounds.TombstoneSpan }

// Counts are the sizes of the ledger.
func (v View) Counts() quota.Counts {
	l := v.ledger
	return quota.Counts{
		Trees: len(l.forest.trees), Nodes: l.forest.nodes, Held: l.allocations.held.Len(), Ended: l.allocations.ended.Len(), Items: l.inventory.items.Len(), Waiting: l.queue.all.length,
		Leases: l.deadlines.queue.leases, Sizes: l.sizes(), MostLiveBytes: l.bounds.LiveBytes,
	}
}

// Trees lists all trees by name.
func (v View) Trees() []quota.TreeSummary {
	names := slices.Sorted(maps.Keys(v.ledger.forest.trees))
	list := make([]quota.TreeSummary, len(names))
	for i, name := range names {
		t := v.ledger.forest.trees[name]
		list[i] = quota.TreeSummary{Name: name, Policy: t.root.policy.Name, Resources: t.registered(), Nodes: len(t.byPath), Claims: t.claims}
	}
	return list
}

func (t *tree) registered() []quota.Resource {
	list := make([]quota.Resource, len(t.resources))
	for i, r := range t.resources {
		list[i] = r.Resource
	}
	return list
}

// Tree is the configuration of one tree, without nodes made on demand: parents before children, siblings by name. NotFound if there is none.
func (v View) Tree(name string) (quota.TreeSpec, *quota.Error) {
	t := v.ledger.forest.trees[name]
	if t == nil {
		return quota.TreeSpec{}, quota.Errorf(quota.NotFound, "name", "there is no tree %q", quota.Clip(name))
	}
	return t.present(), nil
}

// Configuration is that of all trees, by name.
func (v View) Configuration() []quota.TreeSpec {
	list := make([]quota.TreeSpec, 0, len(v.ledger.forest.trees))
	for _, name := range slices.Sorted(maps.Keys(v.ledger.forest.trees)) {
		list = append(list, v.ledger.forest.trees[name].present())
	}
	return list
}

// Cells is the size of a tree, its nodes times its resources; 0 if there is none.
func (v View) Cells(name string) int {
	t := v.ledger.forest.trees[name]
	if t == nil {
		return 0
	}
	return t.size() * len(t.resources)
}

// AllCells is the size of all trees.
func (v View) AllCells() int {
	sum := 0
	for _, t := range v.ledger.forest.trees {
		sum += t.size() * len(t.resources)
	}
	return sum
}

// Allocation is one allocation: held, waiting, or ended and not yet forgotten.
func (v View) Allocation(id string) (quota.AllocationInfo, *quota.Error) {
	a := v.ledger.allocations.lookup(id)
	if a == nil {
		return quota.AllocationInfo{}, quota.Errorf(quota.NotFound, "id", "no allocation %q is held, waits or has ended lately", quota.Clip(id))
	}
	return v.ledger.info(a), nil
}

// Revisions lists up to max remembered changes before a revision (0: from the newest), newest first.
func (v View) Revisions(before uint64, max int) []quota.Revision {
	var list []quota.Revision
	for _, r := range slices.Backward(v.ledger.history.revisions) {
		if len(list) == max {
			break
		}
		if before == 0 || r.Number < before {
			list = append(list, *r)
		}
	}
	return list
}
