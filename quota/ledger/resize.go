package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// firstClaims are the claims of the request that was granted.
func (a *Allocation) firstClaims() []quota.Claim {
	if a.more != nil && a.more.resized != nil && a.more.resized.first != nil {
		return a.more.resized.first
	}
	list := make([]quota.Claim, len(a.claims))
	for i := range a.claims {
		info := a.claims[i].info()
		list[i] = quota.Claim{
			Tree: info.Tree, Node: info.Node, Amounts: info.Amounts, Picks: info.Picks, Standing: info.Standing,
		}
	}
	return list
}

// wantedClaim is a claim that an allocation shall have after a change.
type wantedClaim struct {
	// from is the index of the claim that it continues; -1 if it is new.
	from int
	// tree and node are where it is asked for.
	tree, node string
	// isMoved is true unless the claim stays at the node where it is.
	isMoved bool
	// asked is where a new claim was asked for, if that is not where it is placed; else nil.
	asked   *address
	amounts quota.Vector
	// field names it in refusals, and nodeField its node in that.
	field, nodeField string
}

// wantedPart is an allocation that a split shall make.
type wantedPart struct {
	id     string
	claims []wantedClaim
}

// wantedHolding is what an allocation, and the parts that are split from it, shall hold after a change.
type wantedHolding struct {
	forest *forest
	of     *Allocation
	rest   []wantedClaim
	parts  []wantedPart
	// isDone is true if the allocation holds exactly this.
	isDone bool
	// resizes is the command if that may wait; else nil.
	resizes *quota.Resize
	// digest identifies a change that would not be known by its result when it is repeated: one with a generation, or a
	// transfer that moves a claim to where another one leaves. It is 0 for others.
	digest uint64
}

// resizeAllocation changes amounts of an allocation.
func (l *Ledger) resizeAllocation(c quota.Resize, m mode) Outcome {
	a, refused := l.allocations.checkChange(c.ID, c.Fence)
	if refused == nil {
		refused = checkResizeWait(c.WaitFor)
	}
	if refused != nil {
		return Outcome{Refused: refused}
	}
	want := wantedHolding{forest: &l.forest, of: a, rest: a.wantedClaims(), isDone: true}
	if refused = l.checkCount(len(c.Claims), l.bounds.Claims, "claims", "changes of claims"); refused != nil {
		return Outcome{Refused: refused}
	}
	if c.Generation != 0 {
		want.digest = digestOfResize(c)
	}
	if want.isRepeated() {
		return repeatedChange(a, nil)
	}
	for i, change := range c.Claims {
		if refused = want.resize(change, claimField(i, "")); refused != nil {
			return Outcome{Refused: refused}
		}
		for j, other := range c.Claims[:i] {
			if other.Tree == change.Tree && other.Node == change.Node {
				return Outcome{Refused: quota.Errorf(quota.Invalid, claimField(i, ".node"),
					"%s is changed twice in one command, by claims[%d] too; join the amounts in one",
					quota.Place(change.Tree, change.Node), j)}
			}
		}
	}
	if want.dropsZeros() {
		want.isDone = false
	}
	if out, done := l.answerWaiting(&want, c, m); done {
		return out
	}
	if c.WaitFor > 0 {
		want.resizes = &c
	}
	return l.changeHolding(&want, c.Generation, m)
}

// checkCount refuses a list that is empty or too long.
func (e *environment) checkCount(n, most int, field, what string) *quota.Error {
	if n < 1 || n > most {
		return quota.Errorf(quota.Invalid, field, "there are %d %s; 1 to %d are allowed", n, what, most)
	}
	return nil
}

// checkChange returns the allocation whose holding shall change.
func (s *allocations) checkChange(id string, fence uint64) (*Allocation, *quota.Error) {
	out := s.findToRelease(id)
	if out.Refused != nil {
		return nil, out.Refused
	}
	a := out.Allocation
	switch {
	case a.ended != nil:
		return nil, quota.Errorf(quota.Ended, "id",
			"allocation %q has ended%s and holds nothing any more; ask again under another id", a.id, a.describeEnd())
	case a.isWaiting():
		return nil, quota.Errorf(quota.InUse, "id",
			"request %q waits and holds nothing that could be changed; cancel it, and ask for other amounts", a.id)
	case a.State() == quota.Reserved:
		return nil, quota.Errorf(quota.InUse, "id",
			"allocation %q is a reservation, which is confirmed or cancelled as it is; confirm it first", a.id)
	case fence != 0 && fence != a.fence:
		return nil, a.otherFence(fence)
	}
	return a, nil
}

// otherFence is the refusal of a fence that is not the allocation's.
func (a *Allocation) otherFence(fence uint64) *quota.Error {
	return quota.Errorf(quota.FenceMismatch, "fence",
		"allocation %q has fence %d, not %d: another grant took the place of that one; stop using what it held",
		a.id, a.fence, fence)
}

// wantedClaims are the present claims of an allocation.
func (a *Allocation) wantedClaims() []wantedClaim {
	list := make([]wantedClaim, len(a.claims))
	for i := range a.claims {
		info := a.claims[i].info()
		list[i] = wantedClaim{from: i, tree: info.Tree, node: info.Node, amounts: info.Amounts}
	}
	return list
}

// find returns the claim that was asked for at a node, or else that which belongs there now, because the node has got
// another path since; -1 if there is none.
func (w *wantedHolding) find(tree, node string) int {
	at := slices.IndexFunc(w.rest, func(c wantedClaim) bool { return c.tree == tree && c.node == node })
	if at >= 0 {
		return at
	}
	return slices.IndexFunc(w.rest, func(c wantedClaim) bool {
		return c.tree == tree && c.from >= 0 && !c.isMoved && w.of.claims[c.from].home().path == node
	})
}

// hasItems is true if a claim of the allocation holds items.
func (w *wantedHolding) hasItems(i int) bool {
	from := w.rest[i].from
	return from >= 0 && len(w.of.claims[from].picks()) > 0
}

// resize sets amounts of one claim.
func (w *wantedHolding) resize(c quota.ClaimChange, field string) *quota.Error {
	if len(c.Amounts) == 0 {
		return quota.Errorf(quota.Invalid, field+".amounts", "a change names at least one resource and its new amount")
	}
	if err := w.forest.checkAmounts(c.Tree, c.Amounts, field); err != nil {
		return err
	}
	at := w.find(c.Tree, c.Node)
	if at < 0 {
		w.rest = append(w.rest, wantedClaim{from: -1, tree: c.Tree, node: c.Node, isMoved: true, nodeField: "node"})
		at = len(w.rest) - 1
	}
	if w.hasItems(at) {
		return quota.Errorf(quota.Invalid, field+".node",
			"allocation %q holds items at %s, which have no amount; release the items that are not needed by their names",
			w.of.id, quota.Place(c.Tree, c.Node))
	}
	claim := &w.rest[at]
	claim.field = field
	for _, component := range c.Amounts {
		if amountIn(claim.amounts, component.Resource) != component.Amount {
			w.isDone = false
		}
		claim.amounts = withAmount(claim.amounts, component)
	}
	return nil
}

// checkAmounts refuses amounts that no claim in a tree may have.
func (f *forest) checkAmounts(tree string, amounts quota.Vector, field string) *quota.Error {
	t := f.trees[tree]
	if t == nil {
		return quota.Errorf(quota.NotFound, field+".tree", "there is no tree %q", quota.Clip(tree))
	}
	err := t.placeAmounts(make([]placedAmount, len(amounts)), amounts, 0)
	if err != nil {
		err.Field = field + strings.TrimPrefix(err.Field, claimField(0, ""))
	}
	return err
}

// withAmount is a copy of a vector with another amount of one resource, and without the resource if that is 0.
func withAmount(v quota.Vector, c quota.Component) quota.Vector {
	v = slices.Clone(v)
	i, found := findIn(v, c.Resource)
	switch {
	case found && c.Amount == 0:
		return slices.Delete(v, i, i+1)
	case found:
		v[i] = c
		return v
	case c.Amount == 0:
		return v
	}
	return slices.Insert(v, i, c)
}

// noClaim is the refusal of a place where the allocation claims nothing.
func (w *wantedHolding) noClaim(tree, node, field string) *quota.Error {
	first := w.of.claims[0].info()
	return quota.Errorf(quota.NotFound, field, "allocation %q has no claim at %s; it has one at %s", w.of.id,
		quota.Place(quota.Clip(tree), quota.Clip(node)), quota.Place(first.Tree, first.Node))
}

// dropsZeros is true if the changes give up resources, of which the allocation may hold an amount of 0, and it keeps a
// claim.
func (w *wantedHolding) dropsZeros() bool {
	drops, keeps := false, false
	for i, c := range w.rest {
		keeps = keeps || len(c.amounts) > 0 || w.hasItems(i)
		drops = drops || c.from >= 0 && len(c.amounts) < len(w.of.claims[c.from].info().Amounts)
	}
	return drops && keeps
}

// dropEmpty removes claims without any amount.
func (w *wantedHolding) dropEmpty() *quota.Error {
	var kept []wantedClaim
	for i, c := range w.rest {
		if len(c.amounts) > 0 || w.hasItems(i) {
			kept = append(kept, c)
		}
	}
	if w.rest = kept; len(kept) == 0 {
		return quota.Errorf(quota.Invalid, "claims",
			"allocation %q would hold nothing; release it instead", w.of.id)
	}
	return nil
}
