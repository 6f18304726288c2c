package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Release ends an allocation and refunds it, or returns only some items and keeps the rest. A waiting request
// leaves the queue.
func Release(s *state.State, c quota.Release, m state.Mode) state.Outcome {
	out := checkRelease(&s.Allocations, c)
	if out.Refused != nil || out.Repeated || m == state.DryRun {
		return out
	}
	end := state.Ending{State: quota.Released, Reason: s.ReleaseByOther(out.Allocation)}
	if a := out.Allocation; a.IsWaiting() && len(c.Items) == 0 {
		end.State = quota.Cancelled
		return state.Outcome{Allocation: DropWaiter(s, s.Queue.WaiterOf(a), end)}
	}
	if len(c.Items) > 0 {
		return state.Outcome{Allocation: takeAway(s, out.Allocation, itemsNamed(out.Allocation, c.Items), c.ItemState, end)}
	}
	if c.ItemState != "" {
		ReturnItems(&s.Inventory, out.Allocation, func(*state.PlacedClaim, *state.Item) string { return c.ItemState })
	}
	return state.Outcome{Allocation: endAllocation(s, out.Allocation, end)}
}

func itemsNamed(a *state.Allocation, names []quota.ItemName) itemSet {
	named := map[quota.ItemName]bool{}
	for _, n := range names {
		named[n] = true
	}
	list := itemSet{}
	for _, it := range heldItems(a) {
		if named[quota.ItemName{Tree: it.Stock.Tree, Resource: it.Stock.Resource.Name, Name: it.Name}] {
			list[it.StateSeq] = true
		}
	}
	return list
}

func endAllocation(s *state.State, a *state.Allocation, end state.Ending) *state.Allocation {
	s.Allocations.Held.Delete(a.Fence())
	for i := range a.Claims {
		s.Allocations.RefundClaim(a, i)
	}
	for i := range a.Claims {
		reclaimAt(&s.Allocations, a.Claims[i].At)
	}
	markChangedBy(&s.Forest, a)
	if !a.WantsItems() {
		return KeepEnded(s, a, end)
	}
	ReturnItems(&s.Inventory, a, itemsAfter(end.State))
	ended := KeepEnded(s, a, end)
	announceReturned(&s.Inventory, a)
	return ended
}

// checkRelease also refuses an invalid state or list of items.
func checkRelease(s *state.Allocations, c quota.Release) state.Outcome {
	if err := CheckStates("item_state", c.ItemState); err != nil {
		return state.Outcome{Refused: err}
	}
	if n := len(c.Items); n > s.Bounds.Picks {
		return state.Outcome{Refused: quota.Errorf(quota.Invalid, "items",
			"%d items are given back; at most %d are allowed at once, or all of them without naming any", n,
			s.Bounds.Picks)}
	}
	out := findFenced(s, c.ID, c.Fence)
	if a := out.Allocation; a != nil && !out.Repeated && len(c.Items) > 0 && len(itemsNamed(a, c.Items)) == 0 {
		return state.Outcome{Allocation: withCurrentPlaces(a), Repeated: true}
	}
	return out
}

// FindToRelease returns the allocation to release, or one that has ended already; it changes nothing.
func FindToRelease(s *state.Allocations, id string) state.Outcome {
	if err := CheckID(id); err != nil {
		return state.Outcome{Refused: err}
	}
	a := s.FindByID(id)
	if a == nil {
		return state.Outcome{Refused: NoAllocation(s, id)}
	}
	return state.Outcome{Allocation: a, Repeated: a.Ended != nil}
}

// findFenced is FindToRelease for a caller who may only end what has its fence; 0 is any.
func findFenced(s *state.Allocations, id string, fence uint64) state.Outcome {
	out := FindToRelease(s, id)
	if a := out.Allocation; a != nil && fence != 0 && fence != a.Fence() {
		return state.Outcome{Refused: otherFence(a, fence)}
	}
	return out
}

// NoAllocation is the refusal of an id that is not known, or that the caller may not know.
func NoAllocation(s *state.Allocations, id string) *quota.Error {
	return quota.Errorf(quota.NotFound, "id",
		"no allocation %q is held, waits or has ended lately; list what is held to find its id", quota.Clip(id))
}

// NextDue is what is due first, in ledger time or in civil time; false if nothing is.
func NextDue(s *state.State) (state.Deadline, bool) {
	next, waits := s.Deadlines.Next()
	waits = waits && next.At <= s.Now.At
	scheduled, isDue := s.Calendar.NextDue()
	if !isDue {
		return next, waits
	}
	scheduled.At -= quota.Instant(s.Civil.Offset)
	if waits && next.At <= scheduled.At {
		return next, true
	}
	return scheduled, true
}

// TakesAway is true for a deadline at which requests may lose their place, items or a limit.
func TakesAway(d *state.Deadline) bool {
	return d.Kind == state.DueWaiter || d.Kind == state.DueItem || d.Kind == state.DueSchedule
}

func CheckMost(most int) *quota.Error {
	if most < 1 || most > quota.MaxExpire {
		return quota.Errorf(quota.Invalid, "most", "an expiry ends 1 to %d reservations, leases and the like, not %d",
			quota.MaxExpire, most)
	}
	return nil
}

// Expire ends an allocation that was not confirmed or renewed in time. A reservation restores what it
// displaced, like a cancellation; a lease under revocation counts as preempted.
func Expire(s *state.State, a *state.Allocation) (restored []string) {
	if a.State() == quota.Reserved {
		_, restored = undoReservation(s, a, state.Ending{State: quota.Expired})
		return restored
	}
	if a.EndsAsDeclared() {
		endAllocation(s, a, state.Ending{State: quota.Expired})
		s.Journal.NoteEvent(quota.Event{Kind: quota.EventDeclaredEnd, ID: a.ID()})
		return nil
	}
	if lease := a.Lease(); lease.RevokedBy != "" {
		endAllocation(s, a, state.Ending{State: quota.WasPreempted, By: lease.RevokedBy})
		s.Journal.NoteEvent(quota.Event{
			Kind: quota.EventPreempted, ID: a.ID(),
			By: lease.RevokedBy, Reason: lease.Reason,
		})
		return nil
	}
	endAllocation(s, a, state.Ending{State: quota.Expired})
	s.Journal.NoteEvent(quota.Event{Kind: quota.EventExpired, ID: a.ID()})
	return nil
}

// tombstone is an ended allocation and its end in one piece of memory.
type tombstone struct {
	state.Allocation
	end state.Ending
}

// largeTombstone has the claims too, which otherwise would keep the whole record of the held allocation in memory.
type largeTombstone struct {
	tombstone
	state.InlineClaim
}

func newTombstone(a *state.Allocation, end state.Ending) *state.Allocation {
	if a.IsShareable() {
		t := &tombstone{*a, end}
		t.Ended = &t.end
		return &t.Allocation
	}
	t := &largeTombstone{tombstone: tombstone{*a, end}}
	t.Ended = &t.end
	t.CopyClaims(&t.Allocation)
	return &t.Allocation
}

// KeepEnded makes the tombstone of an allocation that ends now.
func KeepEnded(s *state.State, a *state.Allocation, end state.Ending) *state.Allocation {
	end.Stamp = s.Now
	t := newTombstone(a, end)
	t.ForgetData()
	t.ForgetItems()
	forgetUndo(t)
	if resize := a.WaitingResize(); resize != nil {
		s.Queue.RemoveWaiter(s.Queue.WaiterOf(resize))
		t.More = WithResize(t, nil, resize.Generation()).More
	}
	updateAddresses(t)
	s.Deadlines.Drop(state.DueKey{Kind: state.DueAllocation, Number: a.Fence()})
	if a.State() == quota.Reserved {
		s.Allocations.NoLongerReserved(a)
	}
	s.Allocations.KeepTombstone(t)
	s.Journal.NoteFact(state.FactEnded, t)
	s.Queue.UnblockFreed(a)
	CountRevocation(&s.Queue, a, -1)
	return t
}

// withCurrentPlaces is the record itself or, if nodes have moved since it was made, a copy with their present paths.
func withCurrentPlaces(a *state.Allocation) *state.Allocation {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Placed != c.At.Address {
			updated := *a
			updateAddresses(&updated)
			return &updated
		}
	}
	return a
}

func updateAddresses(a *state.Allocation) {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Placed != c.At.Address {
			a.Claims = slices.Clone(a.Claims)
			break
		}
	}
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Placed != c.At.Address {
			c.Placed = c.At.Address
		}
	}
}

func describeEnd(a *state.Allocation) string {
	switch a.Ended.State {
	case quota.WasPreempted:
		return " (preempted by " + a.Ended.By + ")"
	case quota.Expired:
		if a.Ended.By != "" {
			return " (" + a.Ended.By + ")"
		}
		if a.EndsAsDeclared() {
			return " (its declared time was over)"
		}
		switch lease := a.Lease(); {
		case lease.Unclaimed && lease.TTL == 0:
			return " (granted from the queue, and not collected in time)"
		case lease.Expires > 0:
			return " (not renewed in time)"
		}
		return " (not confirmed in time)"
	case quota.Cancelled:
		if a.Ended.By != "" {
			return " (cancelled by " + a.Ended.By + ")"
		}
		return " (cancelled)"
	case quota.TimedOut:
		return " (not granted in time)"
	case quota.Abandoned:
		return " (its caller did not come back)"
	case quota.Held, quota.Reserved, quota.Released, quota.Waiting:
	}
	return ""
}
