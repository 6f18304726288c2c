package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// A resize that waits is a waiter of its own. Its record has the changes as claims, and is in the queue only: its id
// stands for the allocation, which holds its present amounts and refers to the record (details.resize).

// waitingResize is the record in the queue of the resize that waits for the allocation; nil if none does.
func (a *Allocation) waitingResize() *Allocation {
	if a.more == nil {
		return nil
	}
	return a.more.resize
}

// withResize is a copy of the record with another waiting resize, or with none. The generation of one that ends without
// being carried out stays known, so that its late repetition is not a new resize.
func (a *Allocation) withResize(resize *Allocation, dropped uint64) *Allocation {
	is, more := *a, details{}
	if a.more != nil {
		more = *a.more
	}
	if more.resize = resize; dropped > a.droppedGeneration() {
		known := resized{}
		if more.resized != nil {
			known = *more.resized
		}
		known.dropped = dropped
		more.resized = &known
	}
	is.more = &more
	return &is
}

// droppedGeneration is the highest generation of a resize that waited and was not carried out.
func (a *Allocation) droppedGeneration() uint64 {
	if a.more == nil || a.more.resized == nil {
		return 0
	}
	return a.more.resized.dropped
}

// knownGeneration is the highest generation of a resize that waits, or waited in vain.
func (a *Allocation) knownGeneration() uint64 {
	known := a.droppedGeneration()
	if resize := a.waitingResize(); resize != nil {
		known = max(known, resize.generation())
	}
	return known
}

// checkResizeWait refuses a span that no resize may wait for.
func checkResizeWait(span quota.Span) *quota.Error {
	if span < 0 || span > quota.MaxWait {
		return quota.Errorf(quota.Invalid, "wait_ms",
			"a resize waits for 1 to %d ms, or not at all if that is left out, not for %d", quota.MaxWait, span)
	}
	return nil
}

// answerWaiting answers a resize of an allocation for which one waits already: a repetition of that, or with the
// present amounts its withdrawal. It is false for any other, which is decided as if none waited.
func (l *Ledger) answerWaiting(want *wantedHolding, c quota.Resize, m mode) (Outcome, bool) {
	a := want.of
	resize := a.waitingResize()
	switch {
	case resize == nil:
		return Outcome{}, false
	case c.Generation == resize.generation() && a.isSameResize(resize, c.Claims):
		d := l.previewWaiter(l.queue.waiterOf(resize))
		return Outcome{Decision: waitingDecision(d), Allocation: a.withCurrentPlaces(), Repeated: true}, true
	case want.isDone && c.Generation == 0:
		if m == carryOut {
			a = l.dropResize(a)
		}
		return Outcome{Decision: &granted, Allocation: a.withCurrentPlaces()}, true
	}
	return Outcome{}, false
}

// isSameResize is true if changes of claims are those of the waiting resize.
func (a *Allocation) isSameResize(resize *Allocation, changes []quota.ClaimChange) bool {
	return slices.EqualFunc(resize.claims, changes, func(c placedClaim, change quota.ClaimChange) bool {
		return *c.asked == a.askedPlace(change.Tree, change.Node) && slices.Equal(c.info().Amounts, change.Amounts)
	})
}

// askedPlace is where the claim that a change names was asked for, or the named place if the change adds a claim.
func (a *Allocation) askedPlace(tree, path string) address {
	at := address{tree, path}
	if a.claimAskedAt(&at) >= 0 {
		return at
	}
	for i := range a.claims {
		if c := &a.claims[i]; c.asked.treeName == tree && c.home().path == path {
			return *c.asked
		}
	}
	return at
}

// claimAskedAt is the index of the claim that was asked for at a place; -1 if there is none.
func (a *Allocation) claimAskedAt(at *address) int {
	return slices.IndexFunc(a.claims, func(c placedClaim) bool { return *c.asked == *at })
}

// newResizeWaiter makes a waiter of a resize, with its place in the queue.
func (l *Ledger) newResizeWaiter(a *Allocation, c quota.Resize, place waiting) *waiter {
	w := &waiter{
		resizes: a.fence,
		request: quota.Allocate{ID: a.id, Mode: quota.Wait, WaitFor: c.WaitFor, Priority: a.queueTurn().Priority},
		record:  &Allocation{id: a.id, hash: a.hash, owner: a.owner},
	}
	record := w.record
	record.more = newDetails(&w.request)
	record.more.waiting = &place
	record.more.resized = &resized{generation: c.Generation, first: a.firstClaims()}
	if c.Generation != 0 {
		record.more.resized.change = digestOfResize(c)
	}
	w.turn = record.queueTurn()
	alt := &alternative{of: w, turn: w.turn, resized: record.more.resized}
	for _, change := range c.Claims {
		asked := a.askedPlace(change.Tree, change.Node)
		alt.wanted = append(alt.wanted, quota.Claim{Tree: change.Tree, Node: change.Node, Amounts: change.Amounts})
		alt.claims = append(alt.claims, placedClaim{asked: &asked})
	}
	l.placeResizeClaims(alt, a)
	w.alternatives, record.claims = []*alternative{alt}, alt.claims
	return w
}

// placeResizeClaims gives the claims of a resize their nodes: that of the claim to change, or the nearest to where a
// new one goes. It changes both lists of claims.
func (l *Ledger) placeResizeClaims(alt *alternative, a *Allocation) {
	for i := range alt.claims {
		c, wanted := &alt.claims[i], &alt.wanted[i]
		t := l.forest.trees[wanted.Tree]
		if known := a.claimAskedAt(c.asked); known >= 0 {
			c.at = a.claims[known].home()
			wanted.Node = c.at.path
		} else {
			c.at = t.nearest(wanted.Node)
		}
		c.amounts = make([]placedAmount, len(wanted.Amounts))
		for j, component := range wanted.Amounts {
			c.amounts[j] = placedAmount{resource: t.resource(component.Resource), amount: component.Amount}
		}
	}
	alt.unconfiguredPaths = nil
	alt.useConfiguredNodes()
}

// enqueueResize lets a denied resize wait in the place of the one that waits already, or else behind all others of its
// priority.
func (l *Ledger) enqueueResize(h *holdingChange, c quota.Resize, d quota.Decision, m mode) Outcome {
	a, place := h.was, waiting{arrival: l.queue.arrival + 1, since: l.now, until: l.now.At + quota.Instant(c.WaitFor)}
	place.keepUntil = place.until
	was, dropped := a.waitingResize(), uint64(0)
	if was != nil {
		place.arrival, dropped = was.more.waiting.arrival, was.generation()
	}
	w := l.newResizeWaiter(a, c, place)
	growth := w.size()
	if was != nil {
		growth -= l.queue.waiterOf(was).size()
	} else if refused := l.checkQueueShare(a.owner); refused != nil {
		return Outcome{Refused: refused}
	}
	if refused := l.checkRequestGrowth(growth); refused != nil {
		return Outcome{Refused: refused}
	}
	if m == dryRun {
		return Outcome{Decision: waitingDecision(d), Allocation: a.withCurrentPlaces()}
	}
	if was != nil {
		l.queue.removeWaiter(l.queue.waiterOf(was))
	}
	l.queue.arrival = max(l.queue.arrival, place.arrival)
	t := h.asTx()
	key := l.queue.blockerOf(h.is, d.Violations)
	l.queue.addWaiter(w)
	l.queue.joinQueue(w.alternatives[0], key, t.amountNeeded(key))
	is := a.withResize(w.record, dropped)
	l.allocations.replaceRecord(is)
	l.journal.noteFact(FactResizeWaits, is)
	l.revokeFor(w, &t)
	is, _ = l.allocations.held.Get(is.fence)
	return Outcome{Decision: waitingDecision(d), Allocation: is.withCurrentPlaces()}
}

// dropResize ends the resize that waits for an allocation, which stays as it is.
func (l *Ledger) dropResize(a *Allocation) *Allocation {
	resize := a.waitingResize()
	l.queue.removeWaiter(l.queue.waiterOf(resize))
	is := a.withResize(nil, resize.generation())
	l.allocations.replaceRecord(is)
	l.journal.noteFact(FactResizeDropped, is)
	return is
}

// recheckResize ends a waiting resize that the present command has made invalid. It returns the present record.
func (l *Ledger) recheckResize(a *Allocation) *Allocation {
	resize := a.waitingResize()
	if resize == nil {
		return a
	}
	_, refused := l.placeResize(l.queue.waiterOf(resize).alternatives[0])
	if refused != nil && refused.Kind != quota.Full {
		return l.dropResize(a)
	}
	return a
}
