package ledger_test

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// cohortViolation holds the whole request and looks.
func (m *holdersModel) cohortViolation(h holderOf, tree, path, resource string, want quota.Amount) []quota.Violation {
	spec := m.trees[tree]
	if quotatest.PolicyOf(spec, path) != "cohort" {
		return nil
	}
	before, after := m.room(m.held, spec, path, resource), m.room(append(slices.Clone(m.held), h), spec, path, resource)
	alone := m.room([]holderOf{h}, spec, path, resource)
	isClaimed := false
	for i, c := range h.Claims {
		isClaimed = isClaimed || c.Tree == tree && h.placed[i] == path
	}
	if !isClaimed && after >= before {
		return nil // what is not lent lowers no room above
	}
	if path == "" || quotatest.PolicyOf(spec, quotatest.Above(path)) != "cohort" {
		if after >= 0 {
			return nil
		}
		used := m.used(m.held, tree, path, resource)
		v := quota.Violation{
			Tree: tree, Node: path, Resource: resource, Limit: used + want + after, Used: used,
			Requested: want,
		}
		v.TooLarge = want <= v.Limit && alone < 0
		return []quota.Violation{v}
	}
	most := limitOf(quotatest.FindNode(spec, path).Borrow, resource, quota.NoLimit())
	if most.Kind == quota.Unlimited || after >= -most.Amount {
		return nil
	}
	owed := max(0, -before)
	return []quota.Violation{{
		Tree: tree, Node: path, Resource: resource, Kind: quota.OfBorrowing, Limit: most.Amount, Used: owed,
		Requested: -after - owed,
		TooLarge:  alone < -most.Amount,
	}}
}

// much is more than all that a test can hold.
const much = quota.Amount(1) << 40

// room is Kueue's T: the limit, less what is held here, plus what each child lends of its own room.
func (m *holdersModel) room(held []holderOf, spec quota.TreeSpec, path, resource string) quota.Amount {
	limit := limitOf(quotatest.FindNode(spec, path).Limits, resource, quota.AtMost(0))
	room := limit.Amount
	if limit.Kind == quota.Unlimited {
		room = much
	}
	room -= m.used(held, spec.Name, path, resource)
	for _, child := range spec.Nodes {
		if child.Path == "" || quotatest.Above(child.Path) != path || quotatest.PolicyOf(spec, child.Path) != "cohort" {
			continue
		}
		room += m.used(held, spec.Name, child.Path, resource)
		lent := m.room(held, spec, child.Path, resource)
		if most := limitOf(child.Lend, resource, quota.NoLimit()); most.Kind == quota.Limited {
			lent = min(lent, most.Amount)
		}
		room += lent
	}
	return room
}
