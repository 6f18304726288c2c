package configure

import (
	"fmt"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// rehomeClaims finds the claims that must be counted at home again, and counts them there in the draft, so that later
// checks of the draft see the final usage. It returns a breach where the draft would no longer let claims be counted
// above their nodes although their nodes stay below: the lender would then exceed its limits because of claims that are
// not its own.
func (p Planner) rehomeClaims(s *treeTransition) []quota.Breach {
	if s.old == nil {
		return nil
	}
	var breaches []quota.Breach
	s.heldAtHome = map[*state.Node][]quota.Amount{}
	s.old.Root.Walk(func(n *state.Node) bool {
		stuck, at := 0, s.next[n]
		for _, sits := range n.Borrowers.AllClaims() {
			a, _ := p.State.Allocations.Held.Get(sits.Fence)
			c := &a.Claims[sits.Claim]
			home := s.next[c.Home()]
			switch {
			case home == nil || at == nil || home == at:
			case home.Within(at) && !admit.BorrowsFrom(home, at):
				stuck++
			case admit.MustRehome(home, at, sits.Slides):
				s.rehomings = append(s.rehomings, state.Rehoming{From: at, Home: home, Amounts: c.Amounts})
				s.noteAtHome(c)
			}
		}
		if stuck > 0 {
			breaches = append(breaches, quota.Breach{
				Tree: n.TreeName, Node: n.Path, Policy: at.Policy.Name,
				Text: fmt.Sprintf(
					"%d of the claims counted here belong to nodes below and borrow: release them, or keep a policy "+
						"with soft borrowing from there up to here", stuck),
			})
		}
		return true
	})
	s.countRehomings(1)
	return breaches
}

// rebuildBorrowIndexes rebuilds the borrow indexes after a change of a tree. Claims keep their arrival numbers. Claims
// at a node whose policy now borrows softly get new ones in the order of their grants. Claims that can no longer be
// counted where they are, because their node was moved elsewhere or has got children, are counted at their home again,
// which may put it over its limits. If neither nodes nor resources nor borrowing have changed, it changes nothing. It
// costs the borrowing claims of the tree, and all held ones if some have no arrival number yet.
func (p Planner) rebuildBorrowIndexes(t *state.Tree) {
	claims, isIncomplete := admit.ClearBorrowIndexes(t)
	if isIncomplete {
		claims = append(claims, admit.ClaimsWithoutSeq(&p.State.Allocations, t)...)
	}
	for _, s := range claims {
		p.indexClaim(s.ClaimRef)
	}
	for _, s := range claims {
		a, _ := p.State.Allocations.Held.Get(s.Fence)
		c := &a.Claims[s.Claim]
		if home := c.Home(); home != c.At && admit.MustRehome(home, c.At, s.Slides) {
			admit.MoveClaim(&p.State.Allocations, s.ClaimRef, home)
		}
	}
}

// indexClaim adds a claim to the borrow index of its node, or removes its arrival number if the node does not borrow
// softly any more.
func (p Planner) indexClaim(s state.ClaimRef) {
	previous, _ := p.State.Allocations.Held.Get(s.Fence)
	c := &previous.Claims[s.Claim]
	soft := c.At.Borrows == policy.BorrowSoft
	if soft == (c.ArrivalSeq() != 0) {
		if soft {
			p.State.Allocations.AddBorrower(previous, s.Claim)
		}
		return
	}
	updated := admit.WithClaimAt(previous, s.Claim, c.At, p.State.Allocations.NextArrivalSeq(c.At))
	p.State.Allocations.ReplaceRecord(updated)
	if soft {
		p.State.Allocations.AddBorrower(updated, s.Claim)
	}
}

// noteAtHome adds a claim to the usage that the nodes it has passed would have if it had stayed at home.
func (s *treeTransition) noteAtHome(c *state.PlacedClaim) {
	for n := c.Home(); n != c.At; n = n.Parent {
		if s.heldAtHome[n] == nil {
			s.heldAtHome[n] = make([]quota.Amount, len(n.Subtree))
		}
		for _, p := range c.Amounts {
			s.heldAtHome[n][p.Resource.Index] += p.Amount
		}
	}
}

// countRehomings counts claims in the draft at home, or with -1 where they are now, as install expects it.
func (s *treeTransition) countRehomings(sign quota.Amount) {
	for _, h := range s.rehomings {
		for _, p := range h.Amounts {
			r := s.draft.Resource(p.Resource.Name).Index
			h.From.AddUsage(r, -sign*p.Amount)
			h.Home.AddUsage(r, sign*p.Amount)
		}
	}
}
