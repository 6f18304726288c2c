package oracle

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// Changes of what an allocation holds: all of it is released and the new amounts are taken in one instant. A change is
// denied by the levels that rise beyond their limits. One that may wait is a list of its own in the queue, and the
// allocation keeps what it has meanwhile. The oracle knows them for claims of plain resources at
// configured nodes, and limits of users.

// holdingChange is what an allocation and its parts would hold.
type holdingChange struct {
	of         *allocation
	claims     []quota.Claim
	parts      []*allocation
	isDone     bool // the allocation holds this already
	generation uint64
	text       string // by which a repetition is known; empty if by its result
}

// findHeld finds the allocation to change.
func (o *oracle) findHeld(id string) (*allocation, verdict) {
	a, refused := o.findKnown(id)
	switch {
	case a == nil:
		return nil, refused
	case a.ended != nil:
		return nil, refusal(quota.Ended, "id")
	case a.state == quota.Waiting || a.state == quota.Reserved:
		return nil, refusal(quota.InUse, "id")
	}
	return a, verdict{}
}

// claimAt is the index of the claim at a node.
func claimAt(claims []quota.Claim, tree, node string) int {
	return slices.IndexFunc(claims, func(c quota.Claim) bool { return c.Tree == tree && c.Node == node })
}

func copyClaims(claims []quota.Claim) []quota.Claim {
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Amounts = slices.Clone(claims[i].Amounts)
	}
	return claims
}

// setAmount gives a claim another amount of a resource, and none of it for 0.
func setAmount(c *quota.Claim, to quota.Component) {
	c.Amounts = slices.DeleteFunc(c.Amounts, func(a quota.Component) bool { return a.Resource == to.Resource })
	if to.Amount > 0 {
		c.Amounts = append(c.Amounts, to)
		slices.SortFunc(c.Amounts, func(a, b quota.Component) int { return cmp.Compare(a.Resource, b.Resource) })
	}
}

// amountOf is the amount of a resource, and whether the claim names it.
func amountOf(c quota.Claim, resource string) (quota.Amount, bool) {
	for _, a := range c.Amounts {
		if a.Resource == resource {
			return a.Amount, true
		}
	}
	return 0, false
}

func withoutEmpty(claims []quota.Claim) []quota.Claim {
	return slices.DeleteFunc(claims, func(c quota.Claim) bool { return len(c.Amounts) == 0 })
}

func (o *oracle) resize(c quota.Resize) verdict {
	a, refused := o.findHeld(c.ID)
	if a == nil {
		return refused
	}
	h := &holdingChange{of: a, claims: copyClaims(a.request.Claims), isDone: true}
	givesUp := false // an amount of 0, which is a change unless nothing would be left
	for _, change := range c.Claims {
		at := claimAt(h.claims, change.Tree, change.Node)
		if at < 0 {
			at = len(h.claims)
			h.claims = append(h.claims, quota.Claim{
				Tree: change.Tree, Node: change.Node, Standing: h.claims[0].Standing,
			})
		}
		for _, to := range change.Amounts {
			amount, named := amountOf(h.claims[at], to.Resource)
			givesUp = givesUp || named && to.Amount == 0
			h.isDone = h.isDone && amount == to.Amount
			setAmount(&h.claims[at], to)
		}
	}
	h.claims = withoutEmpty(h.claims)
	h.isDone = h.isDone && (!givesUp || len(h.claims) == 0)
	if waits := o.resizeOf(a); waits != nil {
		switch {
		case fmt.Sprint(waits.changes) == fmt.Sprint(c.Claims):
			return verdict{decided: true, repeated: true, waits: true, fence: a.fence, violations: o.blockersOf(waits)}
		case h.isDone:
			o.leave(waits.waiter)
			return verdict{decided: true, fence: a.fence}
		}
	}
	return o.changeHolding(h, func(candidate *allocation, list []quota.Violation) bool {
		return c.WaitFor > 0 && o.enqueueResize(candidate, c, list)
	})
}

// changeHolding carries a change out, or lets it wait if it may.
func (o *oracle) changeHolding(h *holdingChange, waits func(*allocation, []quota.Violation) bool) verdict {
	a := h.of
	done := verdict{decided: true, fence: a.fence}
	switch {
	case h.generation == 0 && h.isDone, h.generation != 0 && h.generation == a.generation && h.isDone:
		done.repeated = true
		return done
	case h.generation != 0 && h.generation <= a.generation:
		return refusal(quota.GenerationMismatch, "generation")
	case len(h.claims) == 0:
		return refusal(quota.Invalid, "claims")
	}
	candidate := o.candidate(h)
	if list := o.risesOf(candidate, h.parts...); len(list) > 0 {
		done.violations, done.waits = list, waits(candidate, list)
		return done
	}
	o.replaceClaims(a, candidate)
	a.generation, a.change = max(a.generation, h.generation), h.text
	for _, part := range h.parts {
		part.fence = uint64(len(o.allocations) + 1)
		o.allocations = append(o.allocations, part)
	}
	return done
}

// candidate is an allocation as it would be after a change. The resize that waits for it has its turn already.
func (o *oracle) candidate(h *holdingChange) *allocation {
	c := *h.of
	c.queueing, c.alternative = queueing{resizes: h.of}, 0
	if waits := o.resizeOf(h.of); waits != nil {
		c.turn = waits.turn
	}
	c.request.Claims = h.claims
	o.placeClaims(&c, h.of)
	return &c
}

// placeClaims counts all claims where they are asked for, and for the groups of those that they continue.
func (o *oracle) placeClaims(a, before *allocation) {
	a.claimed, a.groups, a.arrivals = nil, nil, make([]uint64, len(a.request.Claims))
	for _, c := range a.request.Claims {
		a.claimed = append(a.claimed, c.Node)
	}
	a.placed = slices.Clone(a.claimed)
	for i, c := range a.request.Claims {
		inTree := func(other quota.Claim) bool { return other.Tree == c.Tree }
		if at := slices.IndexFunc(before.request.Claims, inTree); at >= 0 {
			a.groups = append(a.groups, before.groups[at])
			continue
		}
		a.groups = append(a.groups, o.groupOf(a, i))
	}
}

// replaceClaims gives an allocation the claims of a candidate. A resize that waits for it is over.
func (o *oracle) replaceClaims(a, candidate *allocation) {
	if waits := o.resizeOf(a); waits != nil {
		o.leave(waits.waiter)
	}
	a.request.Claims, a.claimed, a.placed, a.arrivals = candidate.request.Claims, candidate.claimed, candidate.placed,
		candidate.arrivals
	a.groups, a.change = candidate.groups, ""
}

// resizeOf is the resize that waits for an allocation; nil if none does.
func (o *oracle) resizeOf(a *allocation) *allocation {
	for _, waits := range o.waiting {
		if waits.resizes == a {
			return waits
		}
	}
	return nil
}

// enqueueResize lets a resize wait, in the place of one of the same allocation; false if it could never
// be granted.
func (o *oracle) enqueueResize(a *allocation, c quota.Resize, list []quota.Violation) bool {
	if o.markTooLarge(a, list) {
		return false
	}
	if waits := o.resizeOf(a.resizes); waits != nil {
		o.leave(waits.waiter)
	} else {
		o.lastTurn++
		a.turn = o.lastTurn
	}
	o.noteHeads()
	a.waiter = &waiter{record: a.resizes, until: o.now.At + quota.Instant(c.WaitFor)}
	a.changes, a.line = c.Claims, lineOf(list[0])
	o.enter(a)
	return true
}

// risesOf lists what is in the way of a change: levels where more would be asked for than is held now.
func (o *oracle) risesOf(a *allocation, parts ...*allocation) []quota.Violation {
	o.deciding = a
	claims, placed := a.request.Claims, a.placed
	for _, part := range parts {
		claims, placed = slices.Concat(claims, part.request.Claims), slices.Concat(placed, part.placed)
	}
	var list []quota.Violation
	seen := map[string]bool{}
	for i, c := range claims {
		for _, path := range quotatest.Upwards(placed[i]) {
			place := quota.Place(c.Tree, path)
			if seen[place] {
				continue
			}
			seen[place] = true
			for _, r := range o.trees[c.Tree].Resources {
				list = append(list, o.rise(a.resizes, claims, placed, line{c.Tree, path, r.Name, false})...)
			}
			list = append(list, o.riseOfUser(a.resizes, claims, placed, c.Tree, path)...)
		}
	}
	if a.waiter != nil {
		o.markTooLarge(a, list)
	}
	return list
}

// riseOfUser is what a user would hold at a level beyond its limit.
func (o *oracle) riseOfUser(of *allocation, claims []quota.Claim, placed []string, tree, path string,
) []quota.Violation {
	who := quota.Holder{Kind: quota.AUser, Name: of.asked.Principal.User}
	l := quotatest.PrincipalLimit(o.node(tree, path), who)
	if who.Name == "" || l == nil {
		return nil
	}
	var list []quota.Violation
	used, _ := o.holds(tree, path, who)
	for _, most := range l.Limits {
		more := moreThan(of, claims, placed, line{tree: tree, node: path, resource: most.Resource})
		if more.Sign() > 0 && used[most.Resource]+quota.Amount(more.Int64()) > most.Amount {
			list = append(list, quota.Violation{
				Tree: tree, Node: path, Resource: most.Resource, Limit: most.Amount, Used: used[most.Resource],
				Requested: quota.Amount(more.Int64()), Holder: who,
			})
		}
	}
	return list
}

// moreThan is what claims ask for at a level beyond what an allocation holds there.
func moreThan(of *allocation, claims []quota.Claim, placed []string, at line) *big.Int {
	after, _ := quotatest.Requested(claims, placed, at.tree, at.node, at.resource)
	before, _ := quotatest.Requested(of.request.Claims, of.placed, at.tree, at.node, at.resource)
	return new(big.Int).Sub(after, before)
}

// rise is what is in the way of what claims ask for at one level beyond what an allocation holds there.
func (o *oracle) rise(of *allocation, claims []quota.Claim, placed []string, at line) []quota.Violation {
	more := moreThan(of, claims, placed, at)
	if more.Sign() <= 0 {
		return nil
	}
	var list []quota.Violation
	used, limit := o.used(at.tree, at.node, at.resource), o.ceiling(at.tree, at.node, at.resource)
	if new(big.Int).Add(used, more).Cmp(big.NewInt(int64(limit))) > 0 {
		list = append(list, quota.Violation{
			Tree: at.tree, Node: at.node, Resource: at.resource, Limit: limit, Used: quota.Amount(used.Int64()),
			Requested: quota.Amount(more.Int64()),
		})
	}
	return append(list, o.overtaking(at.tree, at.node, at.resource)...)
}

// markTooLarge marks the levels whose whole limit is less than all that the allocation would hold there.
func (o *oracle) markTooLarge(a *allocation, list []quota.Violation) (any bool) {
	for i, v := range list {
		alone, _ := quotatest.Requested(a.request.Claims, a.placed, v.Tree, v.Node, v.Resource)
		list[i].TooLarge = v.Kind == quota.OfResource && alone.Int64() > int64(v.Limit)
		any = any || list[i].TooLarge
	}
	return any
}

func neverWaits(*allocation, []quota.Violation) bool { return false }

// transfer takes claims to other nodes, all at once: each is where it was before the command.
func (o *oracle) transfer(c quota.Transfer) verdict {
	a, refused := o.findHeld(c.ID)
	if a == nil {
		return refused
	}
	h := &holdingChange{of: a, claims: copyClaims(a.request.Claims), isDone: true, generation: c.Generation}
	text := fmt.Sprintf("%T%v", c, c)
	if a.change == text {
		return verdict{decided: true, repeated: true, fence: a.fence}
	}
	leaves := map[int]bool{}
	for i, m := range c.Moves {
		from := claimAt(h.claims, m.Tree, m.From)
		if from < 0 || m.From == m.To {
			continue
		}
		if leaves[from] {
			return refusal(quota.Invalid, fmt.Sprintf("moves[%d].node", i))
		}
		leaves[from] = true
	}
	first := map[line]int{} // claim at a node to which others are joined
	var joined []int
	for i, m := range c.Moves {
		from, to := claimAt(a.request.Claims, m.Tree, m.From), claimAt(a.request.Claims, m.Tree, m.To)
		switch {
		case from < 0 && to >= 0 && !leaves[to], from >= 0 && from == to:
			continue
		case from < 0:
			return refusal(quota.NotFound, fmt.Sprintf("moves[%d].node", i))
		}
		if h.isDone = false; c.Generation != 0 || leaves[to] {
			h.text = text
		}
		if to < 0 || leaves[to] {
			at := line{tree: m.Tree, node: m.To}
			if _, known := first[at]; !known {
				first[at], h.claims[from].Node = from, m.To
				continue
			}
			to = first[at]
		}
		for _, c := range h.claims[from].Amounts {
			had, _ := amountOf(h.claims[to], c.Resource)
			if c.Amount > 0 {
				setAmount(&h.claims[to], quota.Component{Resource: c.Resource, Amount: had + c.Amount})
			}
		}
		joined = append(joined, from)
	}
	slices.Sort(joined)
	for _, i := range slices.Backward(joined) {
		h.claims = slices.Delete(h.claims, i, i+1)
	}
	if c.Generation != 0 {
		h.text = text
	}
	return o.changeHolding(h, neverWaits)
}

// split makes parts of an allocation allocations of their own.
func (o *oracle) split(c quota.Split) verdict {
	a, refused := o.findHeld(c.ID)
	if a == nil {
		return refused
	}
	if v, known := o.findPart(a, c); known {
		return v
	}
	h := &holdingChange{of: a, claims: copyClaims(a.request.Claims), generation: c.Generation}
	for i, part := range c.Parts {
		p := &allocation{granted: o.now, splitFrom: c.ID, lease: lease{ttl: a.ttl}, forced: a.forced}
		p.begin(o.now)
		p.asked = quota.Allocate{
			ID: part.ID, Labels: a.asked.Labels, Principal: a.asked.Principal, Priority: a.asked.Priority,
		}
		for j, taken := range part.Claims {
			field := fmt.Sprintf("parts[%d].claims[%d].", i, j)
			at := claimAt(h.claims, taken.Tree, taken.From)
			if at < 0 {
				return refusal(quota.NotFound, field+"from")
			}
			for _, amount := range taken.Amounts {
				had, _ := amountOf(h.claims[at], amount.Resource)
				if amount.Amount < 1 || amount.Amount > had {
					return refusal(quota.Invalid, field+"amounts["+amount.Resource+"]")
				}
				setAmount(&h.claims[at], quota.Component{Resource: amount.Resource, Amount: had - amount.Amount})
			}
			p.asked.Claims = append(p.asked.Claims, quota.Claim{
				Tree: taken.Tree, Node: taken.To, Amounts: taken.Amounts, Standing: h.claims[at].Standing,
			})
		}
		p.request, p.whole = p.asked, p.asked
		o.placeClaims(p, a)
		h.parts = append(h.parts, p)
	}
	h.claims = withoutEmpty(h.claims)
	return o.changeHolding(h, neverWaits)
}

// findPart answers a split with a part that is known: this split was carried out before, or the id is in use.
func (o *oracle) findPart(a *allocation, c quota.Split) (verdict, bool) {
	for i, part := range c.Parts {
		field := fmt.Sprintf("parts[%d].id", i)
		p := o.find(part.ID)
		switch {
		case part.ID == c.ID:
			return refusal(quota.Invalid, field), true
		case p == nil:
			continue
		case p.splitFrom != c.ID || !isPart(p, part):
			return refusal(quota.IDTaken, field), true
		case p.ended != nil:
			return refusal(quota.Ended, field), true
		}
		return verdict{decided: true, repeated: true, fence: a.fence}, true
	}
	return verdict{}, false
}

func isPart(p *allocation, part quota.Part) bool {
	return slices.EqualFunc(p.asked.Claims, part.Claims, func(c quota.Claim, taken quota.PartClaim) bool {
		return c.Tree == taken.Tree && c.Node == taken.To && slices.Equal(c.Amounts, taken.Amounts)
	})
}
