package permit

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// RefuseStrangersTrees refuses a change of the configuration by a caller without a credential unless it has the rights
// to all parts of the change, also if they make no difference.
func (g Guard) RefuseStrangersTrees(command quota.Command) *quota.Error {
	c, isApply := command.(quota.ApplyTrees)
	if !isApply {
		return nil
	}
	if c.Access != nil {
		if err := g.NeedCluster(access.AccessManage); err != nil {
			return err
		}
	}
	if len(c.Policies)+len(c.RemovePolicies) > 0 {
		if err := g.NeedCluster(access.PolicySet); err != nil {
			return err
		}
	}
	if g.history.Requests[c.Meta.RequestID] != nil {
		return g.NeedCluster(access.ConfigRead) // a repeated request is answered with the whole change
	}
	return nil
}
