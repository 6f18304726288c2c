package admit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Transfer moves claims of an allocation to other nodes.
func Transfer(s *state.State, c quota.Transfer, m state.Mode) state.Outcome {
	a, refused := checkHoldingChange(&s.Allocations, c.ID, c.Fence)
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	want := wantedHolding{forest: &s.Forest, target: a, rest: wantedClaims(a), isDone: true}
	if refused = checkCount(len(c.Moves), s.Bounds.Claims, "moves", "moves"); refused != nil {
		return state.Outcome{Refused: refused}
	}
	want.digest = digestOfTransfer(c)
	if want.isRepeated() {
		return repeatedChange(a, nil)
	}
	isChain, refused := want.moveTogether(c.Moves)
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	if c.Generation == 0 && !isChain {
		want.digest = 0
	}
	return changeHolding(s, &want, c.Generation, m)
}

func moveField(i int) string { return fmt.Sprintf("moves[%d]", i) }

// claimMove has the indexes of the claims at both nodes before the command; -1 without one.
type claimMove struct {
	quota.ClaimMove
	from, to int
	field    string
}

// moveTogether takes claims to other nodes, all at once: every node is where the claims are before the command, so a
// claim is not joined with one that leaves at the same time, and two can change places. It reports whether a claim goes
// to where another one leaves.
func (w *wantedHolding) moveTogether(moves []quota.ClaimMove) (isChain bool, refused *quota.Error) {
	list, leavingBy := make([]claimMove, len(moves)), map[int]string{}
	for i, c := range moves {
		m := claimMove{c, w.find(c.Tree, c.From), w.find(c.Tree, c.To), moveField(i)}
		list[i] = m
		if m.from < 0 || m.from == m.to {
			continue
		}
		if earlier, twice := leavingBy[m.from]; twice {
			return false, quota.Errorf(quota.Invalid, m.field+".node",
				"the claim at %s is moved twice in one command, by %s too; name each claim once, where it is before the command",
				quota.Place(c.Tree, c.From), earlier)
		}
		leavingBy[m.from] = m.field
	}
	var joined []int
	arrivals := map[state.Address]int{}
	for _, m := range list {
		_, vacated := leavingBy[m.to]
		switch {
		case m.from < 0 && m.to >= 0 && !vacated, m.from >= 0 && m.from == m.to:
			continue // it was moved before
		case m.from < 0:
			return false, w.noClaim(m.Tree, m.From, m.field+".node")
		}
		w.isDone, isChain = false, isChain || vacated
		into, at := m.to, state.Address{TreeName: m.Tree, Path: m.To}
		if vacated {
			at.Path = w.target.Claims[w.rest[m.to].from].Home().Path
		}
		if m.to < 0 || vacated {
			first, known := arrivals[at]
			if !known {
				arrivals[at] = m.from
				c := &w.rest[m.from]
				c.node, c.isMoved, c.field, c.nodeField = at.Path, true, m.field, "new_node"
				continue
			}
			into = first
		}
		if refused := w.join(m, into); refused != nil {
			return false, refused
		}
		joined = append(joined, m.from)
	}
	slices.Sort(joined)
	for _, i := range slices.Backward(joined) {
		w.rest = slices.Delete(w.rest, i, i+1)
	}
	return isChain, nil
}

// isRepeated is true if the change is the last one that was made.
func (w *wantedHolding) isRepeated() bool {
	more := w.target.More
	return w.digest != 0 && more != nil && more.Resized != nil && more.Resized.Change == w.digest
}

func digestOfResize(c quota.Resize) uint64 {
	text := []byte("resize")
	text = binary.AppendUvarint(text, c.Generation)
	for _, change := range c.Claims {
		text = fmt.Appendf(text, "%q %q %d", change.Tree, change.Node, len(change.Amounts))
		for _, component := range change.Amounts {
			text = fmt.Appendf(text, "%q %d", component.Resource, component.Amount)
		}
	}
	return digestOf(text)
}

func digestOfTransfer(c quota.Transfer) uint64 {
	text := []byte("transfer")
	text = binary.AppendUvarint(text, c.Generation)
	for _, move := range c.Moves {
		text = fmt.Appendf(text, "%q %q %q", move.Tree, move.From, move.To)
	}
	return digestOf(text)
}

// digestOf is never 0. It is part of snapshots, so it must stay as it is.
func digestOf(text []byte) uint64 {
	h := fnv.New64a()
	h.Write(text)
	return max(1, h.Sum64())
}

func (w *wantedHolding) join(m claimMove, into int) *quota.Error {
	if w.hasItems(m.from) || w.hasItems(into) {
		return w.cannotJoin(m.ClaimMove, m.field)
	}
	w.addAmounts(into, w.rest[m.from].amounts)
	w.rest[into].field = m.field
	return nil
}

func (w *wantedHolding) addAmounts(into int, amounts quota.Vector) {
	to := &w.rest[into]
	for _, component := range amounts {
		if component.Amount == 0 {
			continue
		}
		sum := component.Amount.Plus(state.AmountIn(to.amounts, component.Resource))
		to.amounts = withAmount(to.amounts, quota.Component{Resource: component.Resource, Amount: sum})
	}
}

func (w *wantedHolding) cannotJoin(c quota.ClaimMove, field string) *quota.Error {
	return quota.Errorf(quota.Invalid, field+".to",
		"allocation %q has claims at %s and at %s, and claims of items cannot be joined; transfer it to another node",
		w.target.ID(), quota.Place(c.Tree, c.From), quota.Place(c.Tree, c.To))
}
