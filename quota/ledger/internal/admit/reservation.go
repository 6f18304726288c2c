package admit

import (
	"fmt"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Confirm turns a reservation into a held allocation. What it moved or preempted stays as it is.
func Confirm(s *state.State, c quota.Confirm, m state.Mode) state.Outcome {
	out := checkConfirm(&s.Allocations, c)
	if out.Refused != nil || out.Repeated || m == state.DryRun {
		return out
	}
	confirmed, more := *out.Allocation, *out.Allocation.More
	more.Until, more.Displaced, more.Undo = 0, nil, nil
	more.ForgetExcessVictims()
	if more.Lease != nil {
		begun := *more.Lease
		more.Lease = &begun
	}
	more.BeginHolding(s.Now)
	confirmed.More = &more
	updateAddresses(&confirmed)
	ReplaceLease(s, &confirmed)
	s.Allocations.NoLongerReserved(&confirmed)
	s.Journal.NoteFact(state.FactConfirmed, &confirmed)
	return state.Outcome{Allocation: &confirmed}
}

// checkConfirm returns the reservation to confirm, or an allocation that is confirmed already; it changes nothing. A
// reservation past its deadline is refused even if no Expire has been applied yet, so that the outcome depends on
// ledger time only.
func checkConfirm(s *state.Allocations, c quota.Confirm) state.Outcome {
	out := findFenced(s, c.ID, c.Fence)
	a := out.Allocation
	switch {
	case out.Refused != nil:
		return out
	case a.Ended != nil:
		return state.Outcome{Refused: quota.Errorf(quota.Ended, "id",
			"allocation %q has ended%s and holds nothing any more; ask again under another id", a.ID(), describeEnd(a))}
	case a.IsWaiting():
		return state.Outcome{Refused: quota.Errorf(quota.InUse, "id",
			"request %q waits and holds nothing that could be confirmed; wait until it is granted, or cancel it", a.ID())}
	case a.State() == quota.Held:
		return state.Outcome{Allocation: withCurrentPlaces(a), Repeated: true}
	case a.More.Until <= s.Now.At:
		return state.Outcome{Refused: quota.Errorf(quota.Ended, "id",
			"reservation %q lapsed at %d ms of ledger time, and now it is %d; ask again under another id", a.ID(),
			a.More.Until, s.Now.At)}
	}
	return state.Outcome{Allocation: a}
}

// Cancel ends a reservation and restores what it displaced; a waiting request leaves the queue.
func Cancel(s *state.State, c quota.Cancel, m state.Mode) state.Outcome {
	out := checkCancel(&s.Allocations, c)
	if out.Refused != nil || out.Repeated || m == state.DryRun {
		return out
	}
	end := state.Ending{State: quota.Cancelled, Reason: s.ReleaseByOther(out.Allocation)}
	if a := out.Allocation; a.IsWaiting() {
		return state.Outcome{Allocation: DropWaiter(s, s.Queue.WaiterOf(a), end)}
	}
	ended, restored := undoReservation(s, out.Allocation, end)
	return state.Outcome{Allocation: ended, Restored: restored}
}

// checkCancel returns the reservation or waiting request, or an allocation that has ended already; it changes nothing.
func checkCancel(s *state.Allocations, c quota.Cancel) state.Outcome {
	out := findFenced(s, c.ID, c.Fence)
	if out.Refused == nil && out.Allocation.State() == quota.Held {
		return state.Outcome{Refused: quota.Errorf(quota.InUse, "id",
			"allocation %q is not a reservation, or confirmed already; release it", out.Allocation.ID())}
	}
	return out
}

// undoReservation ends an unconfirmed reservation and restores what it displaced.
//
// A caller that tries and takes back must leave no trace, so the first choice is the exact state from before the
// reservation: if the versions of its trees and its items say that nothing happened in between, nodes and items that it
// removed are made again, and every claim returns without a question about limits (ADR 0059). Otherwise its items go
// back as after a release, and what it displaced returns only if all of it still fits together; if not, the victims
// stay ended, and claims that borrow come down into what became free.
func undoReservation(
	s *state.State, a *state.Allocation, end state.Ending,
) (ended *state.Allocation, restored []string) {
	isUnchanged := unchangedSince(s, a)
	s.Allocations.Held.Delete(a.Fence())
	for i := range a.Claims {
		s.Allocations.RefundClaim(a, i)
	}
	if !isUnchanged {
		ReturnItems(&s.Inventory, a, asFound(a))
	}
	ended = KeepEnded(s, a, end)
	if end.State == quota.Expired {
		s.Journal.NoteEvent(quota.Event{Kind: quota.EventExpired, ID: a.ID()})
	}
	if isUnchanged {
		if restored, isRestored := restoreExactly(s, a); isRestored {
			return ended, restored
		}
		ReturnItems(&s.Inventory, a, asFound(a)) // a victim is not remembered any more
	}
	restored = RestoreDisplaced(s, a)
	markChangedBy(&s.Forest, a)
	announceReturned(&s.Inventory, a)
	return ended, restored
}

func markChangedBy(f *state.Forest, a *state.Allocation) {
	for i := range a.Claims {
		f.MarkChanged(a.Claims[i].At.Tree)
	}
}

func (t *Admission) rememberUndo(a *state.Allocation) {
	s := t.State
	versions := markGranted(s, a, t.victims())
	if len(versions) == 0 {
		return
	}
	a.More.Undo = &state.UndoRecord{
		Trees: versions, Items: changesOfItems(s.Inventory.Trace), Arrival: s.Queue.Arrival,
		LiveBytes: s.Inventory.Trace.LiveBytes,
	}
	if t.staged != nil {
		a.More.Undo.Nodes = t.staged.dynamicNodes()
	}
}

// dynamicNodes are the dynamic nodes where displaced claims had been counted or belonged, with their dynamic ancestors.
func (t *staged) dynamicNodes() []state.DynamicNode {
	var list []state.DynamicNode
	seen := map[*state.Node]bool{}
	var add func(n *state.Node)
	add = func(n *state.Node) {
		if n == nil || !n.Dynamic || seen[n] {
			return
		}
		seen[n] = true
		add(n.Parent)
		list = append(list, state.DynamicNode{Tree: n.TreeName, Path: n.Path, ID: n.ID})
	}
	for _, n := range t.displacedFrom {
		add(n)
	}
	return list
}

// forgetUndo drops what only the end of a reservation needs, unless the allocation may yet be restored as a
// reservation.
func forgetUndo(a *state.Allocation) {
	if a.More == nil || a.More.Undo == nil || a.Ended.State == quota.WasPreempted {
		return
	}
	more := *a.More
	more.Displaced, more.Undo = nil, nil
	a.More = &more
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
	state.ItemImage
	// Owner is the fence of the allocation that held it; 0 if it was idle.
	Owner uint64
	// IsNew is true if the item did not exist; then only its name and Now are set.
	IsNew bool
	// Now is the Turn that the item got; 0 if it was removed.
	Now uint64
}

func ImageOfUndo(u *state.UndoRecord) *UndoImage {
	if u == nil {
		return nil
	}
	image := &UndoImage{Arrival: u.Arrival, LiveBytes: u.LiveBytes}
	for _, v := range u.Trees {
		image.Trees = append(image.Trees, TreeVersionImage{Tree: v.Tree, Before: v.Before, After: v.After})
	}
	for _, n := range u.Nodes {
		image.Nodes = append(image.Nodes, DynamicNodeImage{Tree: n.Tree, Path: n.Path, ID: n.ID})
	}
	for _, b := range u.Items {
		before := ItemBeforeImage{ItemImage: state.ItemImage{ItemName: b.Name}, IsNew: b.Was == nil, Now: b.StateSeq}
		if it := b.Was; it != nil {
			before.ItemImage = state.ItemImage{
				ItemName: b.Name, State: it.State, StateSeq: it.StateSeq, Updated: it.Updated, Since: it.Since,
				Expires: it.Expires,
				Data:    it.Data, Leaving: it.Leaving,
			}
			before.Owner = it.Owner
		}
		image.Items = append(image.Items, before)
	}
	return image
}

func (image *UndoImage) Record() *state.UndoRecord {
	if image == nil {
		return nil
	}
	u := &state.UndoRecord{Arrival: image.Arrival, LiveBytes: image.LiveBytes}
	for _, v := range image.Trees {
		u.Trees = append(u.Trees, state.TreeVersion{Tree: v.Tree, Before: v.Before, After: v.After})
	}
	for _, n := range image.Nodes {
		u.Nodes = append(u.Nodes, state.DynamicNode{Tree: n.Tree, Path: n.Path, ID: n.ID})
	}
	for _, b := range image.Items {
		before := state.ItemBefore{Name: b.ItemName, StateSeq: b.Now}
		if !b.IsNew {
			before.Was = &state.Item{
				Name: b.Name, State: b.State, StateSeq: b.StateSeq, Owner: b.Owner, Updated: b.Updated, Since: b.Since,
				Expires: b.Expires,
				Data:    b.Data, Leaving: b.Leaving,
			}
		}
		u.Items = append(u.Items, before)
	}
	return u
}

// Check refuses a record with numbers that were never assigned, which would restore a state that never existed.
func (image *UndoImage) Check(s *state.State, id string) error {
	if image == nil {
		return nil
	}
	for _, v := range image.Trees {
		if v.Before >= v.After || v.After > s.Forest.Version {
			return fmt.Errorf("reservation %q changed tree %s from version %d to %d, which was never given", id, v.Tree,
				v.Before, v.After)
		}
	}
	for _, n := range image.Nodes {
		if n.ID == 0 || n.ID > s.Forest.NodeID {
			return fmt.Errorf("reservation %q remembers node %d of tree %s, which was never there", id, n.ID, n.Tree)
		}
	}
	for _, b := range image.Items {
		if b.Now > s.Inventory.LastStateSeq || !b.IsNew &&
			(b.StateSeq == 0 || b.StateSeq > s.Inventory.LastStateSeq || b.Owner > s.Allocations.Fence) {
			return fmt.Errorf(
				"reservation %q remembers item %s with a turn or an owner that was never given", id, b.Name)
		}
	}
	return nil
}
