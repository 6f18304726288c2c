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

// DryRun decides a command on the present state and leaves the state as it is. On the way it may change the state, so
// nobody else may use the ledger meanwhile. A command other than Allocate and a change of configuration is answered with
// what is there.
func (v View) DryRun(c quota.Command) Outcome {
	l := v.ledger
	switch c := c.(type) {
	case quota.Allocate:
		return v.dryAllocate(c)
	case quota.Release:
		return l.allocations.releasableAs(c)
	case quota.Renew:
		return v.dryRenew(c)
	case quota.UpdateItems:
		list, err := l.updatable(c)
		return l.inventory.dryItems(list, err)
	case quota.ResetItems:
		list, err := l.resettable(c)
		return l.inventory.dryItems(list, err)
	case quota.Confirm:
		return l.allocations.confirmable(c.ID)
	case quota.Cancel:
		return l.allocations.cancellable(c.ID)
	case quota.Expire:
		return Outcome{Refused: checkMost(c.Most)}
	case quota.ApplyTrees:
		return v.dryConfigure(c.Meta, planner{l}.planTrees(c))
	case quota.SetLimits:
		return v.dryConfigure(c.Meta, planner{l}.planLimits(c))
	case quota.MoveNode:
		return v.dryConfigure(c.Meta, planner{l}.planMove(c))
	case quota.SetMaintenance:
		return v.dryConfigure(c.Meta, planner{l}.planMaintenance(c))
	case quota.RollBack:
		return v.dryConfigure(c.Meta, planner{l}.planRollBack(c))
	case quota.DeleteTree:
		return v.dryConfigure(c.Meta, planner{l}.planDelete(c))
	}
	panic("quota: a command outside the closed list")
}

func (v View) dryAllocate(c quota.Allocate) Outcome {
	l := v.ledger
	if out, known := l.repeatOf(c); known {
		return out
	}
	a, refused := l.place(c)
	if refused != nil {
		return Outcome{Refused: refused}
	}
	if refused = l.checkRequestGrowth(l.counted(a)); refused != nil {
		return Outcome{Refused: refused}
	}
	out := v.dryAdmit(a)
	if d := out.Decision; d != nil && shouldQueue(c, *d) {
		if l.queue.all.length >= l.bounds.Waiting {
			return Outcome{Refused: l.queue.tooManyWait()}
		}
		out.Decision = waitingDecision(*d)
	}
	return out
}

// dryAdmit decides an allocation that has its claims.
func (v View) dryAdmit(a *Allocation) Outcome {
	l := v.ledger
	decision, t := l.admit(a)
	if decision.Granted {
		full := l.allocations.tooMany(t)
		decision.Placements = placements(a, t)
		t.rollback()
		if full {
			return Outcome{Refused: l.full()}
		}
	}
	return Outcome{Decision: &decision}
}

// dryRenew answers the record as it is: a renewal changes nothing but its times and data.
func (v View) dryRenew(c quota.Renew) Outcome {
	a, refused := v.ledger.renewable(c)
	if refused != nil {
		return Outcome{Refused: refused}
	}
	return Outcome{Allocation: a}
}

// dryItems answers items as they are.
func (inv *inventory) dryItems(list []*item, refused *quota.Error) Outcome {
	out := Outcome{Refused: refused}
	for _, it := range list {
		out.Items = append(out.Items, inv.itemInfo(it))
	}
	return out
}

// placements says where the claims of an admitted allocation would be counted.
func placements(a *Allocation, t *trial) []quota.ClaimInfo {
	if t != nil {
		a = t.newcomer()
	}
	return a.current().Claims
}

// dryConfigure answers the present revision: the change would make the next one.
func (v View) dryConfigure(meta quota.ChangeMeta, p plan) Outcome {
	if out, settled := (planner{v.ledger}).judge(meta, p); settled {
		return out
	}
	return Outcome{Configuration: &quota.Configuration{Revision: v.ledger.history.revision, Changes: p.changes, Over: p.over, Effects: p.effects()}}
}
