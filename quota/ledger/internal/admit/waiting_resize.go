package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// A resize that waits is a waiter of its own. Its record has the changes as claims, and is in the queue only: its id
// stands for the allocation, which holds its present amounts and refers to the record (details.resize).

// WithResize is a copy of the record with another waiting resize, or with none. The generation of one that ends without
// being carried out stays known, so that its late repetition is not a new resize.
func WithResize(a, resize *state.Allocation, dropped uint64) *state.Allocation {
	updated, more := *a, state.Details{}
	if a.More != nil {
		more = *a.More
	}
	if more.Resize = resize; dropped > droppedGeneration(a) {
		known := state.Resized{}
		if more.Resized != nil {
			known = *more.Resized
		}
		known.Dropped = dropped
		more.Resized = &known
	}
	updated.More = &more
	return &updated
}

// droppedGeneration is the highest generation of a resize that waited and was not carried out.
func droppedGeneration(a *state.Allocation) uint64 {
	if a.More == nil || a.More.Resized == nil {
		return 0
	}
	return a.More.Resized.Dropped
}

// knownGeneration is the highest generation of a resize that waits, or waited in vain.
func knownGeneration(a *state.Allocation) uint64 {
	known := droppedGeneration(a)
	if resize := a.WaitingResize(); resize != nil {
		known = max(known, resize.Generation())
	}
	return known
}

func checkResizeWait(span quota.Span) *quota.Error {
	if span < 0 || span > quota.MaxWait {
		return quota.Errorf(quota.Invalid, "wait_ms",
			"a resize waits for 1 to %d ms, or not at all if that is left out, not for %d", quota.MaxWait, span)
	}
	return nil
}

// answerWaiting answers a resize of an allocation for which one waits already: a repetition of that, or with the
// present amounts its withdrawal. It is false for any other, which is decided as if none waited.
func answerWaiting(s *state.State, want *wantedHolding, c quota.Resize, m state.Mode) (state.Outcome, bool) {
	a := want.target
	resize := a.WaitingResize()
	switch {
	case resize == nil:
		return state.Outcome{}, false
	case c.Generation == resize.Generation() && isSameResize(a, resize, c.Claims):
		d := PreviewWaiter(s, s.Queue.WaiterOf(resize))
		return state.Outcome{Decision: state.WaitingDecision(d), Allocation: withCurrentPlaces(a), Repeated: true}, true
	case want.isDone && c.Generation == 0:
		if m == state.CarryOut {
			a = dropResize(s, a)
		}
		return state.Outcome{Decision: &granted, Allocation: withCurrentPlaces(a)}, true
	}
	return state.Outcome{}, false
}

func isSameResize(a, resize *state.Allocation, changes []quota.ClaimChange) bool {
	return slices.EqualFunc(resize.Claims, changes, func(c state.PlacedClaim, change quota.ClaimChange) bool {
		return *c.Asked == askedPlace(a, change.Tree, change.Node) && slices.Equal(c.Info().Amounts, change.Amounts)
	})
}

// askedPlace is where the claim that a change names was asked for, or the named place if the change adds a claim.
func askedPlace(a *state.Allocation, tree, path string) state.Address {
	at := state.Address{TreeName: tree, Path: path}
	if ClaimAskedAt(a, &at) >= 0 {
		return at
	}
	for i := range a.Claims {
		if c := &a.Claims[i]; c.Asked.TreeName == tree && c.Home().Path == path {
			return *c.Asked
		}
	}
	return at
}

// ClaimAskedAt is the index of the claim that was asked for at a place; -1 if there is none.
func ClaimAskedAt(a *state.Allocation, at *state.Address) int {
	return slices.IndexFunc(a.Claims, func(c state.PlacedClaim) bool { return *c.Asked == *at })
}

func newResizeWaiter(s *state.State, a *state.Allocation, c quota.Resize, place state.Waiting) *state.Waiter {
	w := &state.Waiter{
		Resizes: a.Fence(),
		Request: quota.Allocate{ID: a.ID(), Mode: quota.Wait, WaitFor: c.WaitFor, Priority: a.QueueTurn().Priority},
		Record:  &state.Allocation{Owner: a.Owner},
	}
	record := w.Record
	record.SetID(a.ID())
	record.More = newDetails(&w.Request)
	record.More.Waiting = &place
	record.More.Resized = &state.Resized{Generation: c.Generation, First: firstClaims(a)}
	if c.Generation != 0 {
		record.More.Resized.Change = digestOfResize(c)
	}
	w.Turn = record.QueueTurn()
	alt := &state.Alternative{Of: w, Turn: w.Turn, Resized: record.More.Resized}
	for _, change := range c.Claims {
		asked := askedPlace(a, change.Tree, change.Node)
		alt.Wanted = append(alt.Wanted, quota.Claim{Tree: change.Tree, Node: change.Node, Amounts: change.Amounts})
		alt.Claims = append(alt.Claims, state.PlacedClaim{Asked: &asked})
	}
	PlaceResizeClaims(s, alt, a)
	w.Alternatives, record.Claims = []*state.Alternative{alt}, alt.Claims
	return w
}

// PlaceResizeClaims gives the claims of a resize their nodes: that of the claim to change, or the nearest to where a
// new one goes. It changes both lists of claims.
func PlaceResizeClaims(s *state.State, alt *state.Alternative, a *state.Allocation) {
	for i := range alt.Claims {
		c, wanted := &alt.Claims[i], &alt.Wanted[i]
		t := s.Forest.Trees[wanted.Tree]
		if known := ClaimAskedAt(a, c.Asked); known >= 0 {
			c.At = a.Claims[known].Home()
			wanted.Node = c.At.Path
		} else {
			c.At = t.Nearest(wanted.Node)
		}
		c.Amounts = make([]state.PlacedAmount, len(wanted.Amounts))
		for j, component := range wanted.Amounts {
			c.Amounts[j] = state.PlacedAmount{Resource: t.Resource(component.Resource), Amount: component.Amount}
		}
	}
	alt.UnconfiguredPaths = nil
	useConfiguredNodes(alt)
}

// enqueueResize puts the resize in the place of the one that waits already, or else behind all others of its priority.
func enqueueResize(s *state.State, h *holdingChange, c quota.Resize, d quota.Decision, m state.Mode) state.Outcome {
	a := h.Previous
	place := state.Waiting{Arrival: s.Queue.Arrival + 1, Since: s.Now, Until: s.Now.At + quota.Instant(c.WaitFor)}
	place.KeepUntil = place.Until
	previous, dropped := a.WaitingResize(), uint64(0)
	if previous != nil {
		place.Arrival, dropped = previous.More.Waiting.Arrival, previous.Generation()
	}
	w := newResizeWaiter(s, a, c, place)
	growth := w.Size()
	if previous != nil {
		growth -= s.Queue.WaiterOf(previous).Size()
	} else if refused := s.CheckQueueShare(a.Owner); refused != nil {
		return state.Outcome{Refused: refused}
	}
	if refused := s.CheckRequestGrowth(growth); refused != nil {
		return state.Outcome{Refused: refused}
	}
	if m == state.DryRun {
		return state.Outcome{Decision: state.WaitingDecision(d), Allocation: withCurrentPlaces(a)}
	}
	if previous != nil {
		s.Queue.RemoveWaiter(s.Queue.WaiterOf(previous))
	}
	s.Queue.Arrival = max(s.Queue.Arrival, place.Arrival)
	t := h.asTx()
	key := blockerOfRequest(&s.Queue, h.updated, d.Violations)
	s.Queue.AddWaiter(w)
	s.Queue.JoinQueue(w.Alternatives[0], key, t.AmountNeeded(key))
	updated := WithResize(a, w.Record, dropped)
	s.Allocations.ReplaceRecord(updated)
	s.Journal.NoteFact(state.FactResizeWaits, updated)
	revokeFor(s, w, &t)
	updated, _ = s.Allocations.Held.Get(updated.Fence())
	return state.Outcome{Decision: state.WaitingDecision(d), Allocation: withCurrentPlaces(updated)}
}

// dropResize ends the resize that waits for an allocation, which stays as it is.
func dropResize(s *state.State, a *state.Allocation) *state.Allocation {
	resize := a.WaitingResize()
	s.Queue.RemoveWaiter(s.Queue.WaiterOf(resize))
	updated := WithResize(a, nil, resize.Generation())
	s.Allocations.ReplaceRecord(updated)
	s.Journal.NoteFact(state.FactResizeDropped, updated)
	return updated
}

// recheckResize returns the present record.
func recheckResize(s *state.State, a *state.Allocation) *state.Allocation {
	resize := a.WaitingResize()
	if resize == nil {
		return a
	}
	_, refused := PlaceResize(s, s.Queue.WaiterOf(resize).Alternatives[0])
	if refused != nil && refused.Kind != quota.Full {
		return dropResize(s, a)
	}
	return a
}
