package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// confirmReservation makes a reservation held for good. What it moved or preempted stays as it is.
func (l *Ledger) confirmReservation(c quota.Confirm, m mode) Outcome {
	out := l.allocations.checkConfirm(c.ID)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	confirmed, more := *out.Allocation, *out.Allocation.more
	more.until, more.displaced, more.undo = 0, nil, nil
	if more.lease != nil {
		begun := *more.lease
		begun.begin(l.now)
		more.lease = &begun
	}
	confirmed.more = &more
	confirmed.updateAddresses()
	l.replaceLease(&confirmed)
	l.allocations.noLongerReserved(&confirmed)
	l.journal.noteFact(FactConfirmed, &confirmed)
	return Outcome{Allocation: &confirmed}
}

// checkConfirm says what a confirmation would make held, or what is so already; it changes nothing. A reservation whose
// time is over is refused even if no Expire has come for it yet: whoever reads the clock of the log is never surprised.
func (s *allocations) checkConfirm(id string) Outcome {
	out := s.findToRelease(id)
	a := out.Allocation
	switch {
	case out.Refused != nil:
		return out
	case a.ended != nil:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id", "allocation %q has ended%s and holds nothing any more; ask again under another id", a.id, a.describeEnd())}
	case a.isWaiting():
		return Outcome{Refused: quota.Errorf(quota.InUse, "id", "request %q waits and holds nothing that could be confirmed; wait until it is granted, or cancel it", a.id)}
	case a.state() == quota.Held:
		return Outcome{Allocation: a.withCurrentPlaces(), Repeated: true}
	case a.more.until <= s.now.At:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id", "reservation %q lapsed at %d ms of ledger time, and now it is %d; ask again under another id", a.id, a.more.until, s.now.At)}
	}
	return Outcome{Allocation: a}
}

// cancelReservation ends a reservation and puts back what it displaced; a request that waits leaves the queue.
func (l *Ledger) cancelReservation(c quota.Cancel, m mode) Outcome {
	out := l.allocations.checkCancel(c.ID)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	if a := out.Allocation; a.isWaiting() {
		return Outcome{Allocation: l.dropWaiter(l.queue.waiterOf(a), quota.Cancelled, "")}
	}
	ended, restored := cancellation{l}.undoReservation(out.Allocation, quota.Cancelled)
	return Outcome{Allocation: ended, Restored: restored}
}

// checkCancel says what a cancellation would end, or what has ended before, in whatever way; it changes nothing.
func (s *allocations) checkCancel(id string) Outcome {
	out := s.findToRelease(id)
	if out.Refused == nil && out.Allocation.state() == quota.Held {
		return Outcome{Refused: quota.Errorf(quota.InUse, "id", "allocation %q is not a reservation, or confirmed already; release it", out.Allocation.id)}
	}
	return out
}

// undoReservation ends a reservation that was not confirmed, and puts back what it displaced if all of that is still possible.
// If nothing came in between, everything is as it was before the reservation (docs/adr/0059).
func (c cancellation) undoReservation(a *Allocation, state quota.State) (ended *Allocation, restored []string) {
	unchanged := c.unchangedSince(a)
	c.allocations.held.Delete(a.fence)
	for i := range a.claims {
		c.allocations.refundClaim(a, i)
	}
	if !unchanged {
		c.inventory.returnItems(a, a.asFound())
	}
	ended = c.keepEnded(a, state, "")
	if state == quota.Expired {
		c.journal.noteEvent(quota.Event{Kind: quota.EventExpired, ID: a.id})
	}
	if unchanged {
		if restored, ok := c.restoreExactly(a); ok {
			return ended, restored
		}
		c.inventory.returnItems(a, a.asFound())
	}
	restored = c.restoreDisplaced(a)
	c.forest.markChangedBy(a)
	c.inventory.announceReturned(a)
	return ended, restored
}

// undoRecord is what a reservation needs, beside the list of what it displaced, so that its end can restore the state from
// before it: nil unless the allocation is reserved, and was reserved since LevelFive. It is bounded by what the reservation
// touched: an entry for each tree, for each item that changed hands, and for each dynamic node that lost a claim.
type undoRecord struct {
	trees []treeVersion
	nodes []dynamicNode // parents before children
	items []itemBefore
	// arrival is the last one given in the queue when the reservation was made.
	arrival uint64
	// liveBytes is what the ledger had of what cannot be forgotten before the reservation.
	liveBytes int64
}

// treeVersion says which version of a tree a reservation found, and which one it left.
type treeVersion struct {
	tree          string
	before, after uint64
}

// dynamicNode is a node made on demand. It vanishes when a victim was the last to hold there.
type dynamicNode struct {
	tree, path string
	id         uint64
}

// markChanged gives a tree a new version: what is held in it, or its configuration, is not what it was. Equal versions of a
// tree mean equal placements, so a cancellation that finds the version that its reservation left knows that nothing came in
// between. Below LevelFive nothing has a version.
func (f *forest) markChanged(t *tree) {
	if f.level >= quota.LevelFive {
		f.version++
		t.version = f.version
	}
}

// markChangedBy marks the trees in which an allocation holds something.
func (f *forest) markChangedBy(a *Allocation) {
	for i := range a.claims {
		f.markChanged(a.claims[i].at.tree)
	}
}

// markGranted marks the trees that a grant has changed: its own, and those of its victims. It answers the versions from before
// and after if the grant is a reservation.
func (l *Ledger) markGranted(a *Allocation, victims []*Allocation) []treeVersion {
	if l.level < quota.LevelFive {
		return nil
	}
	var versions []treeVersion
	first := l.forest.version
	mark := func(a *Allocation, keep bool) {
		for i := range a.claims {
			t := a.claims[i].at.tree
			if t.version > first {
				continue
			}
			before := t.version
			l.forest.markChanged(t)
			if keep {
				versions = append(versions, treeVersion{t.name, before, t.version})
			}
		}
	}
	reserved := a.state() == quota.Reserved
	mark(a, reserved)
	for _, v := range victims {
		mark(v, reserved)
	}
	return versions
}

// rememberUndo completes the record of a reservation that was granted now.
func (t *tx) rememberUndo(a *Allocation) {
	l := t.ledger
	versions := l.markGranted(a, t.victims())
	if len(versions) == 0 {
		return
	}
	a.more.undo = &undoRecord{trees: versions, items: l.inventory.trace.changes(), arrival: l.queue.arrival, liveBytes: l.inventory.trace.liveBytes}
	if t.staged != nil {
		a.more.undo.nodes = t.staged.dynamicNodes()
	}
}

// dynamicNodes are those where claims that were displaced had been counted or belonged, with those above them.
func (t *staged) dynamicNodes() []dynamicNode {
	var list []dynamicNode
	seen := map[*node]bool{}
	var add func(n *node)
	add = func(n *node) {
		if n == nil || !n.dynamic || seen[n] {
			return
		}
		seen[n] = true
		add(n.parent)
		list = append(list, dynamicNode{n.treeName, n.path, n.id})
	}
	for _, n := range t.displacedFrom {
		add(n)
	}
	return list
}

// forgetUndo drops what only the end of a reservation needs, unless the allocation may yet be put back as a reservation.
func (a *Allocation) forgetUndo() {
	if a.more == nil || a.more.undo == nil || a.ended.state == quota.WasPreempted {
		return
	}
	more := *a.more
	more.displaced, more.undo = nil, nil
	a.more = &more
}

// UndoImage is what the end of a reservation needs to restore the state from before it.
type UndoImage struct {
	Trees []TreeVersionImage
	Nodes []DynamicNodeImage
	Items []ItemBeforeImage
	// Arrival is the last one given in the queue when the reservation was made.
	Arrival uint64
	// LiveBytes is what the ledger had before the reservation of what cannot be forgotten.
	LiveBytes int64
}

// TreeVersionImage says which version of a tree a reservation found, and which one it left.
type TreeVersionImage struct {
	Tree          string
	Before, After uint64
}

// DynamicNodeImage is a node made on demand where a victim held something or belonged.
type DynamicNodeImage struct {
	Tree, Path string
	ID         uint64
}

// ItemBeforeImage is an item as it was before a reservation.
type ItemBeforeImage struct {
	ItemImage
	// Owner is the fence of the allocation that held it; 0 if none did.
	Owner uint64
	// IsNew is true if there was no such item; then nothing else is said about it but Now.
	IsNew bool
	// Now is the turn that the item got; 0 if it went.
	Now uint64
}

func (u *undoRecord) image() *UndoImage {
	if u == nil {
		return nil
	}
	image := &UndoImage{Arrival: u.arrival, LiveBytes: u.liveBytes}
	for _, v := range u.trees {
		image.Trees = append(image.Trees, TreeVersionImage{Tree: v.tree, Before: v.before, After: v.after})
	}
	for _, n := range u.nodes {
		image.Nodes = append(image.Nodes, DynamicNodeImage{Tree: n.tree, Path: n.path, ID: n.id})
	}
	for _, b := range u.items {
		before := ItemBeforeImage{ItemImage: ItemImage{ItemName: b.name}, IsNew: b.was == nil, Now: b.turn}
		if it := b.was; it != nil {
			before.ItemImage = ItemImage{
				ItemName: b.name, State: it.state, Turn: it.stateSeq, Updated: it.updated, Since: it.since, Expires: it.expires,
				Data: it.data, Leaving: it.leaving,
			}
			before.Owner = it.owner
		}
		image.Items = append(image.Items, before)
	}
	return image
}

func (image *UndoImage) record() *undoRecord {
	if image == nil {
		return nil
	}
	u := &undoRecord{arrival: image.Arrival, liveBytes: image.LiveBytes}
	for _, v := range image.Trees {
		u.trees = append(u.trees, treeVersion{v.Tree, v.Before, v.After})
	}
	for _, n := range image.Nodes {
		u.nodes = append(u.nodes, dynamicNode{n.Tree, n.Path, n.ID})
	}
	for _, b := range image.Items {
		before := itemBefore{name: b.ItemName, turn: b.Now}
		if !b.IsNew {
			before.was = &item{
				name: b.Name, state: b.State, stateSeq: b.Turn, owner: b.Owner, updated: b.Updated, since: b.Since, expires: b.Expires,
				data: b.Data, leaving: b.Leaving,
			}
		}
		u.items = append(u.items, before)
	}
	return u
}

// check refuses a record with what was never given: it would put the ledger into a state that it could not have had.
func (image *UndoImage) check(l *Ledger, id string) error {
	if image == nil {
		return nil
	}
	for _, v := range image.Trees {
		if v.Before >= v.After || v.After > l.forest.version {
			return fmt.Errorf("reservation %q changed tree %s from version %d to %d, which was never given", id, v.Tree, v.Before, v.After)
		}
	}
	for _, n := range image.Nodes {
		if n.ID == 0 || n.ID > l.forest.nodeID {
			return fmt.Errorf("reservation %q remembers node %d of tree %s, which was never there", id, n.ID, n.Tree)
		}
	}
	for _, b := range image.Items {
		if b.Now > l.inventory.lastStateSeq || !b.IsNew && (b.Turn == 0 || b.Turn > l.inventory.lastStateSeq || b.Owner > l.allocations.fence) {
			return fmt.Errorf("reservation %q remembers item %s with a turn or an owner that was never given", id, b.Name)
		}
	}
	return nil
}
