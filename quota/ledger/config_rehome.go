package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// rehomeClaims finds the claims that must be counted at home again, and counts them there in the draft, so that later
// checks of the draft see the final usage. It returns a breach where the draft would no longer let claims be counted
// above their nodes although their nodes stay below: the lender would then exceed its limits because of claims that are
// not its own.
func (p planner) rehomeClaims(s *treeTransition) []quota.Breach {
	if s.old == nil {
		return nil
	}
	var breaches []quota.Breach
	s.heldAtHome = map[*node][]quota.Amount{}
	s.old.root.walk(func(n *node) bool {
		stuck, at := 0, s.next[n]
		for _, sits := range n.borrowers.allClaims() {
			a, _ := p.ledger.allocations.held.Get(sits.fence)
			c := &a.claims[sits.claim]
			home := s.next[c.home()]
			switch {
			case home == nil || at == nil || home == at:
			case home.within(at) && !home.borrowsFrom(at):
				stuck++
			case home.mustRehome(at, sits.slides):
				s.rehomings = append(s.rehomings, rehoming{at, home, c.amounts})
				s.noteAtHome(c)
			}
		}
		if stuck > 0 {
			breaches = append(breaches, quota.Breach{
				Tree: n.treeName, Node: n.path, Policy: at.policy.Name,
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
func (p planner) rebuildBorrowIndexes(t *tree) {
	seated, unseated := t.clearBorrowIndexes()
	if unseated {
		seated = append(seated, p.ledger.allocations.claimsWithoutSeq(t)...)
	}
	for _, s := range seated {
		p.indexClaim(s.claimRef)
	}
	for _, s := range seated {
		a, _ := p.ledger.allocations.held.Get(s.fence)
		c := &a.claims[s.claim]
		if home := c.home(); home != c.at && home.mustRehome(c.at, s.slides) {
			p.ledger.allocations.moveClaim(s.claimRef, home)
		}
	}
}

// indexClaim adds a claim to the borrow index of its node, or removes its arrival number if the node does not borrow
// softly any more.
func (p planner) indexClaim(s claimRef) {
	was, _ := p.ledger.allocations.held.Get(s.fence)
	c := &was.claims[s.claim]
	soft := c.at.borrows == policy.BorrowSoft
	if soft == (c.arrivalSeq() != 0) {
		if soft {
			p.ledger.allocations.addBorrower(was, s.claim)
		}
		return
	}
	is := was.withClaimAt(s.claim, c.at, p.ledger.allocations.nextArrivalSeq(c.at))
	p.ledger.allocations.replaceRecord(is)
	if soft {
		p.ledger.allocations.addBorrower(is, s.claim)
	}
}

// noteAtHome adds a claim to the usage that the nodes it has passed would have if it had stayed at home.
func (s *treeTransition) noteAtHome(c *placedClaim) {
	for n := c.home(); n != c.at; n = n.parent {
		if s.heldAtHome[n] == nil {
			s.heldAtHome[n] = make([]quota.Amount, len(n.subtree))
		}
		for _, p := range c.amounts {
			s.heldAtHome[n][p.resource.index] += p.amount
		}
	}
}

// countRehomings counts claims in the draft at home, or with -1 where they are now, as install expects it.
func (s *treeTransition) countRehomings(sign quota.Amount) {
	for _, h := range s.rehomings {
		for _, p := range h.amounts {
			r := s.draft.resource(p.resource.Name).index
			h.from.addUsage(r, -sign*p.amount)
			h.home.addUsage(r, sign*p.amount)
		}
	}
}
