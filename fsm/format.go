package fsm

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// EntryFormat is the newest entry format that this version reads and writes: the node's feature level.
const EntryFormat uint32 = 10

const (
	firstFormat  uint32 = 1
	secondFormat uint32 = 2
	thirdFormat  uint32 = 3
	// fourthFormat adds the feature level, checkpoints, and replacements of the state.
	fourthFormat uint32 = 4
	// fifthFormat changes no entry. The ledger follows the rules of quota.LevelFive from it on.
	fifthFormat uint32 = 5
	// sixthFormat adds policies that the configuration defines.
	sixthFormat uint32 = 6
	// seventhFormat adds callers of commands, changes of access, bindings of nodes, changes of subtrees, and requests for
	// limits.
	seventhFormat uint32 = 7
	// eighthFormat adds changes of what an allocation holds, states of items that are to be removed, and trees that
	// require a user.
	eighthFormat uint32 = 8
	// ninthFormat adds changes and limits that depend on time, and what is told about them.
	ninthFormat uint32 = 9
	// tenthFormat changes no entry. The ledger follows the rules of quota.LevelTen from it on.
	tenthFormat uint32 = 10
)

// CallerFormat is the first format whose entries say who asks for their commands.
const CallerFormat = seventhFormat

// RaisedFrom is the first format that needs an entry which raises the feature level. Entries of earlier formats may be
// written as soon as all members understand them.
const RaisedFrom = fourthFormat

// formatOf is the oldest format that can express a command. Entries use the oldest possible format, so that a cluster
// can keep writing in the middle of an upgrade (docs/adr/0009).
func formatOf(c quota.Command) uint32 {
	switch c := c.(type) {
	case quota.SetLimits:
		if slices.ContainsFunc(c.Limits, isAdvisory) {
			return ninthFormat
		}
		return firstFormat
	case quota.DeleteTree:
		return firstFormat
	case quota.Confirm, quota.Cancel, quota.Expire, quota.MoveNode, quota.SetMaintenance, quota.RollBack:
		return secondFormat
	case quota.Renew, quota.UpdateItems, quota.ResetItems:
		return thirdFormat
	case quota.Release:
		return oldestFormat(false, len(c.Items) > 0 || c.ItemState != "")
	case quota.Allocate:
		if allocateNeedsNinth(c) {
			return ninthFormat
		}
		return oldestFormat(allocateNeedsSecond(c), allocateNeedsThird(c))
	case quota.RequestLimits:
		if slices.ContainsFunc(c.Limits, isAdvisory) {
			return ninthFormat
		}
		return seventhFormat
	case quota.ChangeAccess, quota.AdoptAllocations, quota.ApproveRequest, quota.RejectRequest, quota.WithdrawRequest:
		return seventhFormat
	case quota.Resize:
		if c.WaitFor != 0 {
			return ninthFormat
		}
		return eighthFormat
	case quota.Transfer, quota.Split:
		return eighthFormat
	case quota.SetCivilOffset, quota.ScheduleLimits, quota.CancelScheduledLimit, quota.ExtendSchedule, quota.SetWebhook,
		quota.ManageWebhook, quota.AdvanceWebhooks, quota.HoldNode, quota.ResumeNode:
		return ninthFormat
	case quota.ApplyTrees:
		if slices.ContainsFunc(c.Trees, treeNeedsNinth) {
			return ninthFormat
		}
		if slices.ContainsFunc(c.Trees, treeNeedsEighth) {
			return eighthFormat
		}
		if c.Access != nil || c.At != nil || c.KeepAccess || slices.ContainsFunc(c.Trees, treeNeedsSeventh) {
			return seventhFormat
		}
		if len(c.Policies)+len(c.RemovePolicies) > 0 {
			return sixthFormat
		}
		return oldestFormat(c.Prune || slices.ContainsFunc(c.Trees, treeNeedsSecond),
			slices.ContainsFunc(c.Trees, treeNeedsThird))
	}
	panic("fsm: a command outside the closed list")
}

func oldestFormat(second, third bool) uint32 {
	switch {
	case third:
		return thirdFormat
	case second:
		return secondFormat
	}
	return firstFormat
}

func allocateNeedsSecond(c quota.Allocate) bool {
	return c.Mode != quota.Hold || c.ReserveFor != 0 || !isNobody(c.Principal) ||
		slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return c.Standing != quota.Standing{} })
}

func allocateNeedsThird(c quota.Allocate) bool {
	return c.Mode == quota.Wait || c.TTL != 0 || c.WaitFor != 0 || c.Keep != 0 || c.Priority != 0 || len(c.Data) > 0 ||
		slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return len(c.Picks) > 0 })
}

func allocateNeedsNinth(c quota.Allocate) bool {
	return c.For != 0 || len(c.AnyOf) > 0 ||
		slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return len(c.Ranges) > 0 })
}

func treeNeedsSecond(t quota.TreeSpec) bool {
	return t.Forest != "" || t.RequireReason || t.Maintenance || len(t.Moves) > 0 ||
		slices.ContainsFunc(t.Nodes, nodeNeedsSecond)
}

// nodeNeedsSecond compares policies too: the first format knows only open and strict. A member that refused a policy
// known to others would have a different configuration from then on. A node that names a defined policy needs no newer
// format: the definition is in the log already, so every member that follows it understands the sixth.
func nodeNeedsSecond(n quota.NodeSpec) bool {
	return n.Hard || n.Applications != 0 || len(n.Principals)+len(n.Defaults)+len(n.Borrow)+len(n.Lend)+
		len(n.Admins) > 0 ||
		!slices.Contains([]string{"", "open", "strict"}, n.Policy)
}

// resourcesBefore is the largest number of resources of a tree before the third format.
const resourcesBefore = 64

func treeNeedsThird(t quota.TreeSpec) bool {
	return t.Leases != quota.LeaseSettings{} || t.Overtake != 0 || len(t.Resources) > resourcesBefore ||
		slices.ContainsFunc(
			t.Resources, func(r quota.Resource) bool { return r.Unit == quota.Items || r.Items != nil }) ||
		slices.ContainsFunc(t.Nodes, func(n quota.NodeSpec) bool { return n.Queueing != quota.InheritQueueing })
}

func treeNeedsSeventh(t quota.TreeSpec) bool {
	return t.TenantsSee != quota.SeeTotals || t.Approvals != 0 ||
		slices.ContainsFunc(t.Nodes, func(n quota.NodeSpec) bool {
			return len(n.Bindings) > 0 || n.AutoApprove != quota.AutoApprove{}
		})
}

func treeNeedsEighth(t quota.TreeSpec) bool {
	return t.RequirePrincipal || slices.ContainsFunc(t.Resources, func(r quota.Resource) bool {
		return r.Items != nil && (r.Items.Retired != "" || r.Items.Removed != "")
	})
}

func treeNeedsNinth(t quota.TreeSpec) bool {
	return slices.ContainsFunc(t.Nodes, func(n quota.NodeSpec) bool {
		return !n.WarnAt.IsZero() || slices.ContainsFunc(n.Limits, isAdvisory) ||
			slices.ContainsFunc(n.Defaults, isAdvisory)
	})
}

func isAdvisory(l quota.ResourceLimit) bool { return l.Limit.Kind == quota.Advisory }

// snapshotFormat is the oldest format that can express a snapshot. After entries of a newer format it is that format,
// because finding out whether they left any trace would mean searching millions of records.
func snapshotFormat(applied uint32, image *ledger.Snapshot) uint32 {
	undoable := func(r *quota.Revision) bool { return r.Undoable || len(r.Undo) > 0 }
	if image.Header.Event > 0 || slices.ContainsFunc(image.Revisions(), undoable) {
		return max(secondFormat, applied)
	}
	return applied
}

// writtenFormat is the entry format as written in a header, which omits the first format.
func writtenFormat(applied uint32) uint32 {
	if applied == firstFormat {
		return 0
	}
	return applied
}
