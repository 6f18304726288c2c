package admit

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func firstClaims(a *state.Allocation) []quota.Claim {
	if a.More != nil && a.More.Resized != nil && a.More.Resized.First != nil {
		return a.More.Resized.First
	}
	list := make([]quota.Claim, len(a.Claims))
	for i := range a.Claims {
		info := a.Claims[i].Info()
		list[i] = quota.Claim{
			Tree: info.Tree, Node: info.Node, Amounts: info.Amounts, Picks: info.Picks, Standing: info.Standing,
		}
	}
	return list
}

type wantedClaim struct {
	// from is the index of the claim that it continues; -1 if it is new.
	from int
	// tree and node are where it is asked for.
	tree, node string
	// isMoved is true unless the claim stays at the node where it is.
	isMoved bool
	// asked is where a new claim was asked for, if that is not where it is placed; else nil.
	asked   *state.Address
	amounts quota.Vector
	// field names it in refusals, and nodeField its node in that.
	field, nodeField string
}

type wantedPart struct {
	id     string
	claims []wantedClaim
}

type wantedHolding struct {
	forest *state.Forest
	target *state.Allocation
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

// Resize changes amounts of an allocation.
func Resize(s *state.State, c quota.Resize, m state.Mode) state.Outcome {
	a, refused := checkHoldingChange(&s.Allocations, c.ID, c.Fence)
	if refused == nil {
		refused = checkResizeWait(c.WaitFor)
	}
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	want := wantedHolding{forest: &s.Forest, target: a, rest: wantedClaims(a), isDone: true}
	if refused = checkCount(len(c.Claims), s.Bounds.Claims, "claims", "changes of claims"); refused != nil {
		return state.Outcome{Refused: refused}
	}
	if c.Generation != 0 {
		want.digest = digestOfResize(c)
	}
	if want.isRepeated() {
		return repeatedChange(a, nil)
	}
	for i, change := range c.Claims {
		if refused = want.resize(change, ClaimField(i, "")); refused != nil {
			return state.Outcome{Refused: refused}
		}
		for j, other := range c.Claims[:i] {
			if other.Tree == change.Tree && other.Node == change.Node {
				return state.Outcome{Refused: quota.Errorf(quota.Invalid, ClaimField(i, ".node"),
					"%s is changed twice in one command, by claims[%d] too; join the amounts in one",
					quota.Place(change.Tree, change.Node), j)}
			}
		}
	}
	if want.dropsZeros() {
		want.isDone = false
	}
	if out, done := answerWaiting(s, &want, c, m); done {
		return out
	}
	if c.WaitFor > 0 {
		want.resizes = &c
	}
	return changeHolding(s, &want, c.Generation, m)
}

func checkCount(n, most int, field, what string) *quota.Error {
	if n < 1 || n > most {
		return quota.Errorf(quota.Invalid, field, "there are %d %s; 1 to %d are allowed", n, what, most)
	}
	return nil
}

func checkHoldingChange(s *state.Allocations, id string, fence uint64) (*state.Allocation, *quota.Error) {
	out := FindToRelease(s, id)
	if out.Refused != nil {
		return nil, out.Refused
	}
	a := out.Allocation
	switch {
	case a.Ended != nil:
		return nil, quota.Errorf(quota.Ended, "id",
			"allocation %q has ended%s and holds nothing any more; ask again under another id", a.ID(), describeEnd(a))
	case a.IsWaiting():
		return nil, quota.Errorf(quota.InUse, "id",
			"request %q waits and holds nothing that could be changed; cancel it, and ask for other amounts", a.ID())
	case a.State() == quota.Reserved:
		return nil, quota.Errorf(quota.InUse, "id",
			"allocation %q is a reservation, which is confirmed or cancelled as it is; confirm it first", a.ID())
	case fence != 0 && fence != a.Fence():
		return nil, otherFence(a, fence)
	}
	return a, nil
}

func otherFence(a *state.Allocation, fence uint64) *quota.Error {
	if a.Fence() == 0 {
		return quota.Errorf(quota.FenceMismatch, "fence",
			"%q is a request that waits or was never granted, not the grant with fence %d; that one has ended, so stop "+
				"using what it held", a.ID(), fence)
	}
	return quota.Errorf(quota.FenceMismatch, "fence",
		"allocation %q has fence %d, not %d: another grant took the place of that one; stop using what it held",
		a.ID(), a.Fence(), fence)
}

func wantedClaims(a *state.Allocation) []wantedClaim {
	list := make([]wantedClaim, len(a.Claims))
	for i := range a.Claims {
		info := a.Claims[i].Info()
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
		return c.tree == tree && c.from >= 0 && !c.isMoved && w.target.Claims[c.from].Home().Path == node
	})
}

func (w *wantedHolding) hasItems(i int) bool {
	from := w.rest[i].from
	return from >= 0 && len(w.target.Claims[from].Picks()) > 0
}

func (w *wantedHolding) resize(c quota.ClaimChange, field string) *quota.Error {
	if len(c.Amounts) == 0 {
		return quota.Errorf(quota.Invalid, field+".amounts", "a change names at least one resource and its new amount")
	}
	if err := checkAmounts(w.forest, c.Tree, c.Amounts, field); err != nil {
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
			w.target.ID(), quota.Place(c.Tree, c.Node))
	}
	claim := &w.rest[at]
	claim.field = field
	for _, component := range c.Amounts {
		if state.AmountIn(claim.amounts, component.Resource) != component.Amount {
			w.isDone = false
		}
		claim.amounts = withAmount(claim.amounts, component)
	}
	return nil
}

func checkAmounts(f *state.Forest, tree string, amounts quota.Vector, field string) *quota.Error {
	t := f.Trees[tree]
	if t == nil {
		return quota.Errorf(quota.NotFound, field+".tree", "there is no tree %q", quota.Clip(tree))
	}
	err := placeAmounts(t, make([]state.PlacedAmount, len(amounts)), amounts, 0)
	if err != nil {
		err.Field = field + strings.TrimPrefix(err.Field, ClaimField(0, ""))
	}
	return err
}

// withAmount removes the resource if the amount is 0. It changes a copy.
func withAmount(v quota.Vector, c quota.Component) quota.Vector {
	v = slices.Clone(v)
	i, found := state.FindIn(v, c.Resource)
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

func (w *wantedHolding) noClaim(tree, node, field string) *quota.Error {
	first := w.target.Claims[0].Info()
	return quota.Errorf(quota.NotFound, field, "allocation %q has no claim at %s; it has one at %s", w.target.ID(),
		quota.Place(quota.Clip(tree), quota.Clip(node)), quota.Place(first.Tree, first.Node))
}

// dropsZeros is true if the changes give up resources, of which the allocation may hold an amount of 0, and it keeps a
// claim.
func (w *wantedHolding) dropsZeros() bool {
	drops, keeps := false, false
	for i, c := range w.rest {
		keeps = keeps || len(c.amounts) > 0 || w.hasItems(i)
		drops = drops || c.from >= 0 && len(c.amounts) < len(w.target.Claims[c.from].Info().Amounts)
	}
	return drops && keeps
}

func (w *wantedHolding) dropEmpty() *quota.Error {
	var kept []wantedClaim
	for i, c := range w.rest {
		if len(c.amounts) > 0 || w.hasItems(i) {
			kept = append(kept, c)
		}
	}
	if w.rest = kept; len(kept) == 0 {
		return quota.Errorf(quota.Invalid, "claims",
			"allocation %q would hold nothing; release it instead", w.target.ID())
	}
	return nil
}
