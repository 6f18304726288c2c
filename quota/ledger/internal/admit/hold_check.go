package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// holdViolations are the holds at the homes of the claims and above them, each once.
func holdViolations(claims []state.PlacedClaim) []quota.Violation {
	var list []quota.Violation
	for i := range claims {
		for n := claims[i].Home(); n != nil; n = n.Parent {
			hold := currentHold(n)
			if hold == nil {
				continue
			}
			if !slices.ContainsFunc(list, func(v quota.Violation) bool { return isHeldIn(n, v) }) {
				list = append(list, holdViolation(n, hold))
			}
		}
	}
	return list
}

// currentHold is the hold of the node; nil if there is none. A node of a draft has that of its predecessor.
func currentHold(n *state.Node) *state.HoldImage {
	if n.From != nil {
		return n.From.Hold
	}
	return n.Hold
}

func holdViolation(n *state.Node, hold *state.HoldImage) quota.Violation {
	return quota.Violation{Kind: quota.OfHold, Tree: n.TreeName, Node: n.Path, Reason: hold.Reason}
}

func isHeldIn(n *state.Node, v quota.Violation) bool { return v.Tree == n.TreeName && v.Node == n.Path }

// deniesWaiting is true if one of the holds denies requests that would wait for its end.
func deniesWaiting(f *state.Forest, violations []quota.Violation) bool {
	return slices.ContainsFunc(violations, func(v quota.Violation) bool {
		return v.Kind == quota.OfHold && f.Trees[v.Tree].ByPath[v.Node].Hold.Deny
	})
}

// holdViolations lists holds where use would rise, wherever the claims are counted. It must be asked before anything is
// charged.
func (h *holdingChange) holdViolations() []quota.Violation {
	if len(h.state.Forest.OnHold) == 0 {
		return nil
	}
	var claims []state.PlacedClaim
	for _, a := range h.records() {
		claims = append(claims, a.Claims...)
	}
	before := DemandsOf(h.Previous.Claims, (*state.PlacedClaim).Home)
	var list []quota.Violation
	for _, d := range DemandsOf(claims, (*state.PlacedClaim).Home) {
		if d.Node.Hold != nil && d.risesFrom(before) {
			list = append(list, holdViolation(d.Node, d.Node.Hold))
		}
	}
	return list
}

// risesFrom is true if the demand asks for more of its node than one of the former demands did, or if none was of it.
func (d *Demand) risesFrom(before []Demand) bool {
	i := slices.IndexFunc(before, func(b Demand) bool { return b.Node == d.Node })
	return i < 0 || slices.ContainsFunc(d.Amounts, func(p state.PlacedAmount) bool {
		return p.Amount > state.AmountOf(before[i].Amounts, p.Resource.Index)
	})
}

// SetHold gives a node another hold, or none. Records of holds are never changed in place: snapshots share them.
func SetHold(s *state.State, n *state.Node, hold *state.HoldImage) {
	n.Hold = hold
	s.Forest.MarkNode(n)
	if hold == nil {
		ForgetHold(s, n.ID)
		return
	}
	s.Forest.OnHold[n.ID] = n
	s.Deadlines.Set(state.DueKey{Kind: state.DueHold, Number: n.ID}, hold.Until)
	s.Deadlines.Set(state.DueKey{Kind: state.DueDrain, Number: n.ID}, hold.DrainAt)
}

func ForgetHold(s *state.State, node uint64) {
	delete(s.Forest.OnHold, node)
	s.Deadlines.Drop(state.DueKey{Kind: state.DueHold, Number: node})
	s.Deadlines.Drop(state.DueKey{Kind: state.DueDrain, Number: node})
}
