package ledger

import (
	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
)

// refuseStranger refuses commands of a caller without a credential that permit lets pass because the command itself
// would refuse them, or answer them without a right. It is asked only before a command is written: otherwise a caller
// without a credential could fill the log with them. A change of the configuration needs the rights to all of its
// parts, also if it makes no difference.
func (l guard) refuseStranger(c quota.Command) *quota.Error {
	switch c := c.(type) {
	case quota.Release:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.Resize:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.Transfer:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.Split:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.Renew:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.Confirm:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.Cancel:
		return l.allocations.findToRelease(c.ID).Refused
	case quota.ApproveRequest:
		return l.refuseUnknownRequest(c.Number)
	case quota.RejectRequest:
		return l.refuseUnknownRequest(c.Number)
	case quota.WithdrawRequest:
		return l.refuseUnknownRequest(c.Number)
	case quota.CancelScheduledLimit:
		if l.calendar.find(c.ID) == nil {
			return noScheduledLimit(c.ID)
		}
	case quota.ApplyTrees:
		return l.refuseStrangersTrees(c)
	}
	return nil
}

func (l guard) refuseUnknownRequest(number uint64) *quota.Error {
	if l.requests.find(number) == nil {
		return l.unknownRequest(number)
	}
	return nil
}

func (l guard) refuseStrangersTrees(c quota.ApplyTrees) *quota.Error {
	if c.Access != nil {
		if err := l.needCluster(access.AccessManage); err != nil {
			return err
		}
	}
	if len(c.Policies)+len(c.RemovePolicies) > 0 {
		if err := l.needCluster(access.PolicySet); err != nil {
			return err
		}
	}
	if l.history.requests[c.Meta.RequestID] != nil {
		return l.needCluster(access.ConfigRead) // a repeated request is answered with the whole change
	}
	return nil
}
