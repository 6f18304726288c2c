package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// homing is a claim that a draft will count at its home again, and no more where it borrows; see reseat.
type homing struct {
	from, home *node // of the draft
	amounts    []placedAmount
}

// bringHome finds the claims that will be counted at home again, and counts them there in the draft, so that whoever looks
// at it sees what will be held where. It answers the breaches where the draft would no longer let claims be counted above
// their nodes, although their nodes stay below: whoever lends to them would then be held to limits that he has not broken.
func (pl planner) bringHome(s *succession) []quota.Breach {
	if s.old == nil {
		return nil
	}
	var breaches []quota.Breach
	s.belongs = map[*node][]quota.Amount{}
	s.old.root.walk(func(n *node) bool {
		stuck, at := 0, s.next[n]
		for _, sits := range n.bench.all() {
			a, _ := pl.allocations.held.Get(sits.fence)
			c := &a.claims[sits.claim]
			home := s.next[c.home()]
			switch {
			case home == nil || at == nil || home == at:
			case home.within(at) && !home.borrowsFrom(at):
				stuck++
			case home.callsBack(at, sits.slides):
				s.homings = append(s.homings, homing{at, home, c.amounts})
				s.belong(c)
			}
		}
		if stuck > 0 {
			breaches = append(breaches, quota.Breach{
				Tree: n.treeName, Node: n.path, Policy: at.policy.Name,
				Text: fmt.Sprintf("%d of the claims counted here belong to nodes below and borrow: release them, or keep policy %s from there up to here", stuck, n.policy.Name),
			})
		}
		return true
	})
	s.countHomings(1)
	return breaches
}

// belong notes for the nodes that the claim has passed by what they would hold if it had stayed at home.
func (s *succession) belong(c *placedClaim) {
	for n := c.home(); n != c.at; n = n.parent {
		if s.belongs[n] == nil {
			s.belongs[n] = make([]quota.Amount, len(n.subtree))
		}
		for _, p := range c.amounts {
			s.belongs[n][p.resource.index] += p.amount
		}
	}
}

// countHomings counts in the draft what will be held at home, or with -1 where it is now, as install wants it.
func (s *succession) countHomings(sign quota.Amount) {
	for _, h := range s.homings {
		for _, p := range h.amounts {
			r := s.draft.resource(p.resource.Name).index
			h.from.add(r, -sign*p.amount)
			h.home.add(r, sign*p.amount)
		}
	}
}
