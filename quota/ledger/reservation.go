package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// confirmReservation turns a reservation into a held allocation. What it moved or preempted stays as it is.
func (l *Ledger) confirmReservation(c quota.Confirm, m mode) Outcome {
	out := l.allocations.checkConfirm(c.ID)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	confirmed, more := *out.Allocation, *out.Allocation.more
	more.until, more.displaced, more.undo = 0, nil, nil
	more.forgetExcessVictims()
	if more.lease != nil {
		begun := *more.lease
		more.lease = &begun
	}
	more.beginHolding(l.now)
	confirmed.more = &more
	confirmed.updateAddresses()
	l.replaceLease(&confirmed)
	l.allocations.noLongerReserved(&confirmed)
	l.journal.noteFact(FactConfirmed, &confirmed)
	return Outcome{Allocation: &confirmed}
}

// checkConfirm returns the reservation to confirm, or an allocation that is confirmed already; it changes nothing. A
// reservation past its deadline is refused even if no Expire has been applied yet, so that the outcome depends on
// ledger time only.
func (s *allocations) checkConfirm(id string) Outcome {
	out := s.findToRelease(id)
	a := out.Allocation
	switch {
	case out.Refused != nil:
		return out
	case a.ended != nil:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id",
			"allocation %q has ended%s and holds nothing any more; ask again under another id", a.id, a.describeEnd())}
	case a.isWaiting():
		return Outcome{Refused: quota.Errorf(quota.InUse, "id",
			"request %q waits and holds nothing that could be confirmed; wait until it is granted, or cancel it", a.id)}
	case a.State() == quota.Held:
		return Outcome{Allocation: a.withCurrentPlaces(), Repeated: true}
	case a.more.until <= s.now.At:
		return Outcome{Refused: quota.Errorf(quota.Ended, "id",
			"reservation %q lapsed at %d ms of ledger time, and now it is %d; ask again under another id", a.id,
			a.more.until, s.now.At)}
	}
	return Outcome{Allocation: a}
}

// cancelReservation ends a reservation and restores what it displaced; a waiting request leaves the queue.
func (l *Ledger) cancelReservation(c quota.Cancel, m mode) Outcome {
	out := l.allocations.checkCancel(c.ID)
	if out.Refused != nil || out.Repeated || m == dryRun {
		return out
	}
	end := ending{state: quota.Cancelled, reason: l.releaseByOther(out.Allocation)}
	if a := out.Allocation; a.isWaiting() {
		return Outcome{Allocation: l.dropWaiter(l.queue.waiterOf(a), end)}
	}
	ended, restored := cancellation{l}.undoReservation(out.Allocation, end)
	return Outcome{Allocation: ended, Restored: restored}
}

// checkCancel returns the reservation or waiting request to cancel, or an allocation that has ended already; it changes
// nothing.
func (s *allocations) checkCancel(id string) Outcome {
	out := s.findToRelease(id)
	if out.Refused == nil && out.Allocation.State() == quota.Held {
		return Outcome{Refused: quota.Errorf(quota.InUse, "id",
			"allocation %q is not a reservation, or confirmed already; release it", out.Allocation.id)}
	}
	return out
}

// undoReservation ends an unconfirmed reservation and restores what it displaced, if all of it can still be restored.
// If nothing happened in between, the state is exactly that from before the reservation (docs/adr/0059).
func (c cancellation) undoReservation(a *Allocation, end ending) (ended *Allocation, restored []string) {
	unchanged := c.unchangedSince(a)
	c.ledger.allocations.held.Delete(a.fence)
	for i := range a.claims {
		c.ledger.allocations.refundClaim(a, i)
	}
	if !unchanged {
		c.ledger.inventory.returnItems(a, a.asFound())
	}
	ended = c.ledger.keepEnded(a, end)
	if end.state == quota.Expired {
		c.ledger.journal.noteEvent(quota.Event{Kind: quota.EventExpired, ID: a.id})
	}
	if unchanged {
		if restored, ok := c.restoreExactly(a); ok {
			return ended, restored
		}
		c.ledger.inventory.returnItems(a, a.asFound())
	}
	restored = c.restoreDisplaced(a)
	c.ledger.forest.markChangedBy(a)
	c.ledger.inventory.announceReturned(a)
	return ended, restored
}

// markChangedBy marks the trees in which an allocation holds something.
func (f *forest) markChangedBy(a *Allocation) {
	for i := range a.claims {
		f.markChanged(a.claims[i].at.tree)
	}
}

// rememberUndo completes the undo record of a new reservation.
func (t *tx) rememberUndo(a *Allocation) {
	l := t.ledger
	versions := l.markGranted(a, t.victims())
	if len(versions) == 0 {
		return
	}
	a.more.undo = &undoRecord{
		trees: versions, items: l.inventory.trace.changes(), arrival: l.queue.arrival,
		liveBytes: l.inventory.trace.liveBytes,
	}
	if t.staged != nil {
		a.more.undo.nodes = t.staged.dynamicNodes()
	}
}

// dynamicNodes are the dynamic nodes where displaced claims had been counted or belonged, with their dynamic ancestors.
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

// forgetUndo drops what only the end of a reservation needs, unless the allocation may yet be restored as a
// reservation.
func (a *Allocation) forgetUndo() {
	if a.more == nil || a.more.undo == nil || a.ended.state == quota.WasPreempted {
		return
	}
	more := *a.more
	more.displaced, more.undo = nil, nil
	a.more = &more
}

// UndoImage is the record that the end of a reservation needs to restore the state from before it.
type UndoImage struct {
	Trees []TreeVersionImage
	Nodes []DynamicNodeImage
	Items []ItemBeforeImage
	// Arrival is the last number of the queue at the time of the reservation.
	Arrival uint64
	// LiveBytes is the size of the ledger, as bounded by Bounds.LiveBytes, before the reservation.
	LiveBytes int64
}

// TreeVersionImage has the versions of a tree before and after a reservation.
type TreeVersionImage struct {
	Tree          string
	Before, After uint64
}

// DynamicNodeImage is a dynamic node where a victim held something or belonged.
type DynamicNodeImage struct {
	Tree, Path string
	ID         uint64
}

// ItemBeforeImage is an item as it was before a reservation.
type ItemBeforeImage struct {
	ItemImage
	// Owner is the fence of the allocation that held it; 0 if it was idle.
	Owner uint64
	// IsNew is true if the item did not exist; then only its name and Now are set.
	IsNew bool
	// Now is the Turn that the item got; 0 if it was removed.
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
				ItemName: b.name, State: it.state, Turn: it.stateSeq, Updated: it.updated, Since: it.since,
				Expires: it.expires,
				Data:    it.data, Leaving: it.leaving,
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
				name: b.Name, state: b.State, stateSeq: b.Turn, owner: b.Owner, updated: b.Updated, since: b.Since,
				expires: b.Expires,
				data:    b.Data, leaving: b.Leaving,
			}
		}
		u.items = append(u.items, before)
	}
	return u
}

// check refuses a record with numbers that were never assigned, which would restore a state that never existed.
func (image *UndoImage) check(l *Ledger, id string) error {
	if image == nil {
		return nil
	}
	for _, v := range image.Trees {
		if v.Before >= v.After || v.After > l.forest.version {
			return fmt.Errorf("reservation %q changed tree %s from version %d to %d, which was never given", id, v.Tree,
				v.Before, v.After)
		}
	}
	for _, n := range image.Nodes {
		if n.ID == 0 || n.ID > l.forest.nodeID {
			return fmt.Errorf("reservation %q remembers node %d of tree %s, which was never there", id, n.ID, n.Tree)
		}
	}
	for _, b := range image.Items {
		if b.Now > l.inventory.lastStateSeq || !b.IsNew &&
			(b.Turn == 0 || b.Turn > l.inventory.lastStateSeq || b.Owner > l.allocations.fence) {
			return fmt.Errorf(
				"reservation %q remembers item %s with a turn or an owner that was never given", id, b.Name)
		}
	}
	return nil
}
