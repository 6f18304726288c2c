package admit

import (
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// enqueue lets the request wait, with each list, in the queue of its first blocker.
func enqueue(
	s *state.State, request *quota.Allocate, lists []deniedList, d quota.Decision, m state.Mode,
) state.Outcome {
	a := lists[0].tx.Allocation
	if refused := s.CheckQueueShare(a.Owner); refused != nil {
		return state.Outcome{Refused: refused}
	}
	w := state.NewWaiter(a, request)
	if err := s.CheckRequestGrowth(s.CountedSize(w)); err != nil {
		return state.Outcome{Refused: err}
	}
	if m == state.DryRun {
		return state.Outcome{Decision: state.WaitingDecision(d)}
	}
	a.More.Waiting = &state.Waiting{
		Arrival: s.Queue.Arrival + 1, Since: s.Now,
		Until:     s.Now.At + quota.Instant(state.WaitSpan(request)),
		KeepUntil: s.Now.At + quota.Instant(state.KeepSpan(request)),
	}
	s.Queue.Arrival += uint64(request.ListCount()) // each list has a turn of its own
	w.Turn = a.QueueTurn()
	addAlternatives(&s.Queue, w, lists)
	s.Queue.AddWaiter(w)
	for i, alt := range w.Alternatives {
		s.Queue.JoinQueue(alt, lists[i].blocker, alt.Need)
	}
	s.Journal.NoteFact(state.FactWaiting, a)
	for i := range lists {
		createWanted(&s.Inventory, lists[i].tx.Allocation, lists[i].violations)
		revokeFor(s, w, &lists[i].tx)
	}
	return state.Outcome{Decision: state.WaitingDecision(d), Allocation: w.Record}
}

// Touch records a heartbeat from a waiting caller and extends its place in the queue by the keep span.
func Touch(q *state.WaitQueue, w *state.Waiter) {
	place := *w.Record.More.Waiting
	place.KeepUntil = max(place.KeepUntil, q.Now.At+quota.Instant(state.KeepSpan(&w.Request)))
	if place == *w.Record.More.Waiting {
		return
	}
	ReplaceWaiting(q, w, place)
	q.Deadlines.Set(state.DueKey{Kind: state.DueWaiter, Number: place.Arrival}, place.EndsAt())
}

// ReplaceWaiting gives a waiting request another record, with the claims of its first alternative.
func ReplaceWaiting(q *state.WaitQueue, w *state.Waiter, place state.Waiting) {
	updated, more, first := *w.Record, *w.Record.More, w.Alternatives[0]
	more.Waiting, more.Resized = &place, first.Resized
	updated.More, updated.Claims = &more, first.Claims
	replaceWaitingRecord(q, w, &updated)
}

func replaceWaitingRecord(q *state.WaitQueue, w *state.Waiter, updated *state.Allocation) {
	q.Bytes -= q.SizeOf(w)
	w.Record = updated
	q.Bytes += q.SizeOf(w)
	if !w.IsResize() {
		q.Allocations.ByID.Put(updated)
		return
	}
	a, _ := q.Allocations.Held.Get(w.Resizes)
	q.Allocations.ReplaceRecord(WithResize(a, updated, 0))
}

// DropWaiter ends a waiting request, or a waiting resize.
func DropWaiter(s *state.State, w *state.Waiter, end state.Ending) *state.Allocation {
	if w.IsResize() {
		a, _ := s.Allocations.Held.Get(w.Resizes)
		return dropResize(s, a)
	}
	s.Queue.RemoveWaiter(w)
	updated, more := *w.Record, *w.Record.More
	more.Waiting = nil
	updated.More = &more
	ended := KeepEnded(s, &updated, end)
	if end.State != quota.Cancelled || end.By != "" {
		s.Journal.NoteEvent(quota.Event{Kind: quota.EventDropped, ID: updated.ID(), By: end.By})
	}
	return ended
}

// DropOverdue ends a request whose deadline has passed, or whose caller has stopped sending heartbeats.
func DropOverdue(s *state.State, w *state.Waiter) {
	end := state.Ending{State: quota.TimedOut}
	if place := w.Record.More.Waiting; place.KeepUntil < place.Until {
		end.State = quota.Abandoned
	}
	DropWaiter(s, w, end)
}

// CurrentInfo is the present state of a record, with its place in the queue if it waits.
func CurrentInfo(s *state.State, a *state.Allocation) quota.AllocationInfo {
	info := a.CurrentInfo()
	switch resize := a.WaitingResize(); {
	case a.IsWaiting():
		addPlacesTo(s.Queue.WaiterOf(a), info.Waiting)
	case resize != nil:
		addPlacesTo(s.Queue.WaiterOf(resize), &info.Resize.Waiting)
	}
	return info
}

// useConfiguredNodes lets the claims refer to configured nodes, because dynamic ones may be removed before they are
// granted.
func useConfiguredNodes(alt *state.Alternative) {
	for i := range alt.Claims {
		c, path := &alt.Claims[i], alt.Wanted[i].Node
		for c.At.Dynamic {
			c.At = c.At.Parent
		}
		if c.Placed = c.At.Address; c.At.Path != path {
			c.Placed = &state.Address{TreeName: c.At.TreeName, Path: path}
			noteUnconfigured(alt, i, strings.TrimPrefix(path[len(c.At.Path):], "/"))
		}
		standing, picks := c.Standing(), c.Picks()
		if c.More = nil; standing != (quota.Standing{}) {
			c.More = &state.ClaimDetails{Standing: standing}
		}
		if len(picks) > 0 {
			c.SetItems(picks, nil)
		}
	}
}

func noteUnconfigured(alt *state.Alternative, i int, rest string) {
	if alt.UnconfiguredPaths == nil {
		alt.UnconfiguredPaths = make([]string, len(alt.Claims))
	}
	alt.UnconfiguredPaths[i] = rest
}
