package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/policy"
)

// checkStocks verifies that every item is indexed where it belongs (I5).
func (v verifier) checkStocks() error {
	owned, err := v.checkOwners()
	if err != nil {
		return err
	}
	items, held := 0, 0
	for _, t := range v.forest.trees {
		for _, r := range t.resources {
			if (r.stock != nil) != (r.Unit == quota.Items) || r.stock != nil && r.stock.resource != r {
				return fmt.Errorf("resource %s of tree %s has items that it should not have, or none", r.Name, t.name)
			}
			if r.stock == nil {
				continue
			}
			n, err := v.checkStockOf(r.stock)
			if err != nil {
				return err
			}
			items, held = items+len(r.stock.byName), held+n
		}
	}
	if items != v.inventory.items.Len() || held != owned || items > v.bounds.Items {
		return fmt.Errorf("I5: resources have %d items of which %d are held, but %d are known, and allocations list %d",
			items, held, v.inventory.items.Len(), owned)
	}
	return nil
}

// checkOwners verifies that allocations own the items that they list, and as many as they count.
func (v verifier) checkOwners() (owned int, err error) {
	for fence, a := range v.allocations.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			for _, h := range c.heldItems() {
				it := h.is.stock.byName[h.name]
				if it == nil || it.owner != fence || it.stock.tree != c.at.treeName ||
					it.stock.resource.Name != h.resource {
					return 0, fmt.Errorf("I5: allocation %q lists item %s, but does not own it", a.id, h.name)
				}
				owned++
			}
			for _, p := range c.amounts {
				if p.resource.Unit == quota.Items && p.amount != c.countOf(p.resource.Name) {
					return 0, fmt.Errorf("I5: allocation %q counts %d %s, but holds %d", a.id, p.amount,
						p.resource.Name, c.countOf(p.resource.Name))
				}
			}
		}
	}
	return owned, nil
}

// checkStockOf verifies one resource, and returns the number of its held items.
func (v verifier) checkStockOf(s *stock) (held int, err error) {
	if len(s.names) != len(s.byName) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items and %d names", s.resource.Name, s.tree,
			len(s.byName), len(s.names))
	}
	idle, leaving, spec := 0, 0, s.resource.Items
	for i, name := range s.names {
		it := s.byName[name]
		known, _ := v.inventory.items.Get(it.stateSeq)
		switch {
		case it.name != name || it.stock != s || known != it || i > 0 && s.names[i-1] >= name ||
			it.stateSeq > v.inventory.lastStateSeq:
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not in its place", name, s.resource.Name, s.tree)
		case it.leaving && it.owner == 0 || !it.leaving && !spec.OnDemand() && !specNamesItem(spec, name):
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not configured, and stays", name,
				s.resource.Name, s.tree)
		}
		if it.leaving {
			leaving++
		}
		if it.owner != 0 {
			held++
			continue
		}
		idle++
		if s.removesIn(it.state) || it.isRetired() && it.expires != (quota.Stamp{}) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s is in state %s, and its lifespan goes on", name,
				s.resource.Name, s.tree, it.state)
		}
		if !s.containsItem(it) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not available, although it is not held", name,
				s.resource.Name, s.tree)
		}
	}
	for state, m := range s.idle {
		if idle -= m.Len(); m.Len() == 0 {
			return 0, fmt.Errorf("resource %s of tree %s keeps an empty list for state %s",
				s.resource.Name, s.tree, state)
		}
	}
	if idle != 0 || len(s.byName) < spec.Min || spec.OnDemand() && leaving != max(0, s.surplus()) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items of which %d are held, which cannot be",
			s.resource.Name, s.tree, len(s.byName), held)
	}
	return held, nil
}

// containsItem reports whether an item is indexed as idle.
func (s *stock) containsItem(it *item) bool {
	m := s.idle[it.state]
	if m == nil {
		return false
	}
	shelved, _ := m.Get(it.stateSeq)
	return shelved == it
}

// checkAccounts verifies I3: the usage of users and groups, and the running applications, follow from the held claims.
func (v verifier) checkAccounts() error {
	want := map[*tree]*accounts{}
	for _, t := range v.forest.trees {
		want[t] = &accounts{users: map[string]*holder{}, groups: map[string]*holder{}}
	}
	applications := map[*node]map[memberKey]bool{}
	for _, a := range v.allocations.held.All() {
		p := a.principal()
		for i := range a.claims {
			c := &a.claims[i]
			if p.User == "" {
				continue
			}
			if c.more == nil || c.more.track == nil ||
				c.home().tree.accounts.tracks[c.more.track.trackKey] != c.more.track {
				return fmt.Errorf("I3: allocation %q of user %s is not on any track", a.id, p.User)
			}
			want[c.home().tree].tally(c, p, applications)
		}
	}
	for t, acc := range want {
		if err := t.accounts.is(acc); err != nil {
			return fmt.Errorf("I3: in tree %s, %w", t.name, err)
		}
		for _, n := range t.byPath {
			if n.applications != len(applications[n]) {
				return fmt.Errorf("I3: %s says that %d applications run, but there are %d", n.place(), n.applications,
					len(applications[n]))
			}
		}
	}
	return nil
}

// tally counts a claim without the incremental indexes.
func (acc *accounts) tally(c *placedClaim, p quota.Principal, applications map[*node]map[memberKey]bool) {
	acc.tallyFor(acc.users, quota.Holder{Kind: quota.AUser, Name: p.User}, c, p.Application)
	if group := c.group(); group != "" {
		acc.tallyFor(acc.groups, quota.Holder{Kind: quota.AGroup, Name: group}, c, p.Application)
	}
	for n := c.home(); n != nil && p.Application != ""; n = n.parent {
		if applications[n] == nil {
			applications[n] = map[memberKey]bool{}
		}
		applications[n][memberKey{p.User, p.Application}] = true
	}
}

func (acc *accounts) tallyFor(list map[string]*holder, who quota.Holder, c *placedClaim, application string) {
	if list[who.Name] == nil {
		list[who.Name] = &holder{Holder: who, at: map[*node]*holding{}}
	}
	h := list[who.Name]
	for n := c.home(); n != nil; n = n.parent {
		if h.at[n] == nil {
			h.at[n] = &holding{used: make([]quota.Amount, len(n.tree.resources)), runs: map[string]*run{}}
		}
		at := h.at[n]
		if at.runs[application] == nil {
			at.runs[application] = &run{}
			if application != "" {
				at.applications++
			}
		}
		at.claims++
		at.runs[application].claims++
		for _, p := range c.amounts {
			at.used[p.resource.index] += p.amount
		}
	}
}

// is compares accounts with those that tally has counted.
func (acc *accounts) is(want *accounts) error {
	if err := sameHolders(acc.users, want.users); err != nil {
		return err
	}
	return sameHolders(acc.groups, want.groups)
}

func sameHolders(have, want map[string]*holder) error {
	if len(have) != len(want) {
		return fmt.Errorf("%d users or groups hold something, but there are accounts of %d", len(want), len(have))
	}
	for name, w := range want {
		h := have[name]
		if h == nil || len(h.at) != len(w.at) {
			return fmt.Errorf("%s has no account, or at other nodes than it holds something", name)
		}
		for n, at := range w.at {
			if err := h.at[n].is(at); err != nil {
				return fmt.Errorf("%s at %s: %w", name, n.place(), err)
			}
		}
	}
	return nil
}

func (h *holding) is(want *holding) error {
	if h == nil || h.claims != want.claims || h.applications != want.applications || len(h.runs) != len(want.runs) {
		return fmt.Errorf("its claims and applications are not those that are held")
	}
	for r := range want.used {
		if h.used[r] != want.used[r] || h.used[r] < 0 {
			return fmt.Errorf("its account says %d of resource %d, but its claims add up to %d", h.used[r],
				r, want.used[r])
		}
	}
	for name, w := range want.runs {
		if r := h.runs[name]; r == nil || r.claims != w.claims {
			return fmt.Errorf("application %q does not have the claims that are held", name)
		}
	}
	return nil
}

// checkBorrowIndexes verifies that exactly the claims of borrowing nodes are indexed, each under its own arrival number
// and in the right bucket.
func (v verifier) checkBorrowIndexes() error {
	benches, homes := map[*node]*borrowIndex{}, map[*node]int{}
	taken := map[uint64]bool{}
	for fence, a := range v.allocations.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			if c.home() != c.at {
				homes[c.home()]++
			}
			if c.at.borrows != policy.BorrowSoft {
				if c.arrivalSeq() != 0 || c.home() != c.at {
					return fmt.Errorf(
						"claim %d of %q has a seat or is away from its node at %s, which does not borrow softly", i,
						a.id, c.at.place())
				}
				continue
			}
			if seat := c.arrivalSeq(); seat == 0 || seat > v.allocations.lastArrivalSeq || taken[seat] {
				return fmt.Errorf("claim %d of %q has seat %d of %d at %s, which is none or another's", i, a.id, seat,
					v.allocations.lastArrivalSeq, c.at.place())
			}
			taken[c.arrivalSeq()] = true
			if !c.home().borrowsFrom(c.at) {
				return fmt.Errorf("claim %d of %q is counted at %s but cannot borrow there from %s", i, a.id,
					c.at.place(), c.home().place())
			}
			if benches[c.at] == nil {
				benches[c.at] = newBorrowIndex()
			}
			benches[c.at].addClaim(c, claimRef{fence, i})
		}
	}
	var err error
	for _, t := range v.forest.trees {
		t.root.walk(func(n *node) bool {
			if !n.borrowers.sameAs(benches[n]) || n.homes != homes[n] {
				err = fmt.Errorf(
					"%s says who sits there, or how many of its claims are counted further up, and it is not so",
					n.place())
			}
			return err == nil
		})
	}
	return err
}

// sameAs reports whether two indexes have the same claims in the same groups and buckets. An empty index equals none.
func (b *borrowIndex) sameAs(other *borrowIndex) bool {
	if b == nil || other == nil {
		return b.isEmpty() && other.isEmpty()
	}
	return maps.EqualFunc(b.groups, other.groups, (*priorityGroup).sameAs) &&
		maps.EqualFunc(b.reclaims, other.reclaims, (*reclaimIndex).sameAs)
}

func (b *borrowIndex) isEmpty() bool { return b == nil || len(b.groups)+len(b.reclaims) == 0 }

func (d *priorityGroup) sameAs(other *priorityGroup) bool {
	return slices.Equal(d.holds, other.holds) && haveSameClaims(&d.claims, &other.claims)
}

func (d *reclaimIndex) sameAs(other *reclaimIndex) bool {
	placed := 0
	sound := d.byArrival.IsSound(func(seq uint64, r *bucket) bool {
		placed++
		first, _, found := r.claims.Min()
		return found && first == seq
	})
	return sound && placed == len(d.byAmounts) && maps.EqualFunc(d.byAmounts, other.byAmounts, (*bucket).sameAs)
}

func (r *bucket) sameAs(other *bucket) bool { return haveSameClaims(&r.claims, &other.claims) }

func haveSameClaims(claims, others *ordmap.Small[claimRef]) bool {
	for seq, who := range claims.All() {
		if found, taken := others.Get(seq); !taken || found != who {
			return false
		}
	}
	return claims.Len() == others.Len()
}

// checkQueue verifies I7: every waiting request is in one queue, its blocker or a request that must not be overtaken
// there blocks it, and no waiting request could be granted.
func (v verifier) checkQueue() error {
	if v.queue.dirty.Len() > 0 || v.queue.unassigned.waiters.Len() > 0 {
		return fmt.Errorf("%d blocker queues are dirty and %d requests are in no queue between two commands",
			v.queue.dirty.Len(), v.queue.unassigned.waiters.Len())
	}
	queues, pressing, revoked := map[*blockerQueue]int{}, map[*blockerQueue]int{}, map[string]int{}
	for _, a := range v.allocations.held.All() {
		if by := a.lease().revokedBy; by != "" {
			revoked[by]++
		}
	}
	if !maps.Equal(revoked, v.queue.revokedFor) {
		return fmt.Errorf("leases are revoked for %v, but %v are counted", revoked, v.queue.revokedFor)
	}
	last, owners := rankqueue.First(), map[string]int{}
	for w := range v.queue.all.All() {
		if w.record.owner != "" {
			owners[w.record.owner]++
		}
		if err := v.checkWaiter(w, last); err != nil {
			return err
		}
		last = w.turn
		for _, alt := range w.alternatives {
			if err := v.checkAlternative(alt); err != nil {
				return err
			}
			queues[alt.blockedIn]++
			if alt.awaitsRevocation {
				pressing[alt.blockedIn]++
			}
		}
	}
	if !maps.Equal(owners, v.queue.byOwner) {
		return fmt.Errorf("requests of %v wait, but %v are counted", owners, v.queue.byOwner)
	}
	if n := v.queue.all.Len(); n != len(v.queue.byArrival) {
		return fmt.Errorf("%d requests wait, but %d are known by their arrival", n, len(v.queue.byArrival))
	}
	for bq := range queues {
		if bq.revocationsPending != pressing[bq] {
			return fmt.Errorf("%d requests of the queue for %s await a revocation, but it counts %d", pressing[bq], bq,
				bq.revocationsPending)
		}
	}
	return v.checkBlockerQueues(queues)
}

func (v verifier) checkWaiter(w *waiter, last rankqueue.Rank) error {
	a, place := w.record, w.record.more.waiting
	switch {
	case !last.Before(w.turn) || place.arrival != w.turn.Arrival || place.arrival > v.queue.arrival ||
		a.more.priority != w.turn.Priority:
		return fmt.Errorf("request %q is not in its place in the queue", a.id)
	case w.isResize() && !v.isResizeOf(w) || !w.isResize() && v.allocations.byID.Find(a.id) != a:
		return fmt.Errorf("request %q cannot be found by its id, or its allocation does not know it", a.id)
	case v.queue.byArrival[place.arrival] != w || a.ended != nil || a.fence != 0:
		return fmt.Errorf("request %q cannot be found by its arrival, or holds something", a.id)
	case place.since.At > v.now.At:
		return fmt.Errorf("I9: request %q waits since a future time", a.id)
	case len(w.alternatives) == 0 || a.more.resized != w.alternatives[0].resized ||
		!slices.EqualFunc(a.claims, w.alternatives[0].claims, func(x, y placedClaim) bool { return x.at == y.at }):
		return fmt.Errorf("request %q has no alternative, or other claims than its first", a.id)
	}
	return nil
}

// checkAlternative verifies that an alternative of a waiting request cannot be granted, and waits for what is in its
// way.
func (v verifier) checkAlternative(alt *alternative) error {
	id := alt.of.record.id
	switch {
	case alt.blockedIn == nil || v.queue.findQueue(alt.blockedIn.blocker) != alt.blockedIn ||
		alt.blockedIn.within(quota.MaxAmount, alt.turn) != alt:
		return fmt.Errorf("I7: request %q is in no queue", id)
	case alt.headSince > max(1, v.now.At) || alt.blockedIn.head() == alt && alt.headSince == 0:
		return fmt.Errorf("I9: request %q is at the head of a queue since a future time", id)
	}
	if alt.awaitsRevocation != (v.queue.revokedFor[id] > 0) {
		return fmt.Errorf("%d leases are revoked for %q, but it says that it presses: %v", v.queue.revokedFor[id],
			id, alt.awaitsRevocation)
	}
	t, d, full := v.judgeAlternative(alt)
	t.rollback()
	b := t.allocation
	switch {
	case alt.blockedIn.tree == nil && (full || v.queue.isStillBlocked(alt, b, d.Violations)):
	case full || d.Granted:
		return fmt.Errorf("I7: request %q waits for %s, but could be granted", id, alt.blockedIn)
	case !v.queue.isStillBlocked(alt, b, d.Violations) && !alt.heldUp(d.Violations) && !v.blockedThere(alt) &&
		!alt.blockedBelow(d.Violations):
		return fmt.Errorf("I7: request %q waits for %s, but that is not in its way", id, alt.blockedIn)
	case t.amountNeeded(alt.blockedIn.blocker) != alt.need:
		return fmt.Errorf("request %q needs %d of %s, but its queue says %d", id,
			t.amountNeeded(alt.blockedIn.blocker), alt.blockedIn, alt.need)
	}
	return nil
}

// isResizeOf is true if the allocation of a waiting resize refers to it.
func (v verifier) isResizeOf(w *waiter) bool {
	a, held := v.allocations.held.Get(w.resizes)
	return held && a.id == w.record.id && a.waitingResize() == w.record && a.owner == w.record.owner
}

// heldUp is true if a request must not overtake another in a tree with soft borrowing: then it is not tried there, and
// its decision does not list what else blocks it. Every change of such a tree marks all its queues dirty.
func (alt *alternative) heldUp(violations []quota.Violation) bool {
	return alt.blockedIn.tree != nil && alt.blockedIn.tree.soft &&
		slices.ContainsFunc(violations, func(v quota.Violation) bool {
			return v.Kind == quota.OfQueue && v.Tree == alt.blockedIn.tree.name
		})
}

// blockedBelow is true if a dynamic node below the blocker's node is in the way. Before another claim created it, the
// blocker's node was the nearest that existed. The request is still retried in time, because what frees capacity at a
// node also marks the queues above it.
func (alt *alternative) blockedBelow(violations []quota.Violation) bool {
	key := alt.blockedIn.blocker
	return key.node != nil && slices.ContainsFunc(violations, func(v quota.Violation) bool {
		n := key.tree.byPath[v.Node]
		return v.Tree == key.tree.name && n != nil && n.dynamic && n.within(key.node) && v.Holder == key.holder &&
			(key.resource == nil || key.resource.Name == v.Resource)
	})
}

// blockedThere is true if the blocker blocks the claims in its tree: of several claims with soft borrowing, a decision
// lists only the first that finds no node.
func (v verifier) blockedThere(alt *alternative) bool {
	if alt.blockedIn.tree == nil {
		return false
	}
	if alt.of.isResize() {
		return v.blocksResizeThere(alt)
	}
	request := alt.asked()
	request.Claims = slices.DeleteFunc(slices.Clone(request.Claims),
		func(c quota.Claim) bool { return c.Tree != alt.blockedIn.tree.name })
	a, refused := v.placeClaims(request)
	if refused != nil {
		return false
	}
	a.more.waiting = alt.of.record.more.waiting
	t := v.beginTx(a)
	d := t.decide()
	t.rollback()
	return !d.Granted && v.queue.isStillBlocked(alt, a, d.Violations)
}

// blocksResizeThere is blockedThere for a resize.
func (v verifier) blocksResizeThere(alt *alternative) bool {
	part := *alt
	part.claims, part.wanted = nil, nil
	for i, c := range alt.claims {
		if c.at.tree == alt.blockedIn.tree {
			part.claims, part.wanted = append(part.claims, c), append(part.wanted, alt.wanted[i])
		}
	}
	t, d, full := v.judgeResize(&part)
	t.rollback()
	return !full && !d.Granted && v.queue.isStillBlocked(alt, t.allocation, d.Violations)
}

// checkBlockerQueues verifies that exactly the queues with waiters exist, and that they are listed wherever they should
// be.
func (v verifier) checkBlockerQueues(queues map[*blockerQueue]int) error {
	kept := len(v.queue.queuesForLedger)
	for _, t := range v.forest.trees {
		kept += len(t.queues)
		here := 0
		for _, r := range t.resources {
			here += len(r.queues)
		}
		for _, n := range t.byPath {
			here += len(n.queues)
		}
		if here != len(t.queues) {
			return fmt.Errorf("tree %s has %d queues, but its nodes and resources have %d", t.name, len(t.queues), here)
		}
	}
	if kept != len(queues) {
		return fmt.Errorf("there are %d blocker queues, but requests wait in %d", kept, len(queues))
	}
	for bq, length := range queues {
		if bq.waiters.Len() != length || bq.at != 0 {
			return fmt.Errorf("the queue for %s has %d requests, but %d wait in it", bq, bq.waiters.Len(), length)
		}
		if err := bq.waiters.Check(); err != nil {
			return fmt.Errorf("the queue for %s: %w", bq, err)
		}
		for alt := range bq.waiters.All() {
			if bq.within(alt.need, alt.turn) != alt {
				return fmt.Errorf("the queue for %s does not find request %q by its need of %d", bq, alt.of.record.id,
					alt.need)
			}
		}
	}
	return nil
}
