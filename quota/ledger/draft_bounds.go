package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// draftBounds checks what only some policies know, and where a policy may stand: nodes may be hard where borrowing is soft,
// and bound what they borrow and lend in a cohort. It needs the policies of the draft to be settled.
func (t *tree) draftBounds(field string, specs []quota.NodeSpec) *quota.Error {
	for i, spec := range specs {
		n, at := t.byPath[spec.Path], nodeField(field, i)
		if spec.Hard && n.borrows != policy.BorrowSoft {
			return quota.Errorf(quota.Invalid, at+".hard", "%s is hard, but its policy %s has no soft nodes; leave it out, or use a policy that borrows softly", n.place(), n.policy.Name)
		}
		if err := n.draftBounds(at); err != nil {
			return err
		}
		if top := n.cohortAbove(); top != nil && n.borrows == policy.BorrowSoft {
			return quota.Errorf(quota.Invalid, at+".policy", "policy %s of %s borrows softly inside of the cohort of %s; what is pushed up there would escape its bounds", n.policy.Name, n.place(), top.place())
		}
	}
	return nil
}

func (n *node) draftBounds(field string) *quota.Error {
	if len(n.spec.Borrow)+len(n.spec.Lend) > 0 && n.borrows != policy.BorrowBounded {
		kind := ".borrow"
		if len(n.spec.Borrow) == 0 {
			kind = ".lend"
		}
		return quota.Errorf(quota.Invalid, field+kind, "%s bounds what is borrowed or lent, but its policy %s does not; leave it out, or use the policy cohort", n.place(), n.policy.Name)
	}
	n.borrow, n.lend = n.spread(n.spec.Borrow), n.spread(n.spec.Lend)
	return nil
}

// spread lays bounds over the resources of the tree; what is absent is not bounded.
func (n *node) spread(set []quota.ResourceLimit) []quota.Amount {
	most := slices.Repeat([]quota.Amount{quota.MaxAmount}, len(n.tree.resources))
	for _, s := range set {
		most[n.tree.resource(s.Resource).index] = s.Limit.Ceiling()
	}
	return most
}

// cohortAbove is the nearest ancestor in a cohort, or nil.
func (n *node) cohortAbove() *node {
	for at := n.parent; at != nil; at = at.parent {
		if at.borrows == policy.BorrowBounded {
			return at
		}
	}
	return nil
}
