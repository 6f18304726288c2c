package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// NeedsPlan reports whether only the plan of a command says what rights it needs.
func NeedsPlan(c quota.Command) bool {
	switch c.(type) {
	case quota.ApplyTrees, quota.RollBack, quota.MoveNode:
		return true
	default:
		return false
	}
}

// refuseStrangersTrees refuses a change of the configuration by a caller without a credential unless it has the rights
// to all parts of the change, also if they make no difference.
func (g guard) refuseStrangersTrees(command quota.Command) *quota.Error {
	c, is := command.(quota.ApplyTrees)
	if !is {
		return nil
	}
	if c.Access != nil {
		if err := g.needCluster(access.AccessManage); err != nil {
			return err
		}
	}
	if len(c.Policies)+len(c.RemovePolicies) > 0 {
		if err := g.needCluster(access.PolicySet); err != nil {
			return err
		}
	}
	if g.history.requests[c.Meta.RequestID] != nil {
		return g.needCluster(access.ConfigRead) // a repeated request is answered with the whole change
	}
	return nil
}
