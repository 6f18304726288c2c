package fsm

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// EntryFormat is the newest format of entries that this version writes and understands: the node's feature level.
const EntryFormat uint32 = 5

const (
	firstFormat  uint32 = 1
	secondFormat uint32 = 2
	thirdFormat  uint32 = 3
	// fourthFormat knows the feature level, checkpoints, and replacements of the whole state.
	fourthFormat uint32 = 4
	// fifthFormat changes no entry. From it on the ledger follows the rules of quota.LevelFive.
	fifthFormat uint32 = 5
)

// RaisedFrom is the first format that no entry may have before the feature level was raised to it by an entry that says
// so. Entries of the formats before it may be written as soon as all members understand them.
const RaisedFrom = fourthFormat

// formatOf is the oldest format that has all of a command. Entries are written in no newer one than they need, so that
// a cluster in the middle of an upgrade goes on with what all of its members understand (docs/adr/0009).
func formatOf(c quota.Command) uint32 {
	switch c := c.(type) {
	case quota.SetLimits, quota.DeleteTree:
		return firstFormat
	case quota.Confirm, quota.Cancel, quota.Expire, quota.MoveNode, quota.SetMaintenance, quota.RollBack:
		return secondFormat
	case quota.Renew, quota.UpdateItems, quota.ResetItems:
		return thirdFormat
	case quota.Release:
		return oldest(false, len(c.Items) > 0 || c.ItemState != "")
	case quota.Allocate:
		return oldest(secondAllocate(c), thirdAllocate(c))
	case quota.ApplyTrees:
		return oldest(c.Prune || slices.ContainsFunc(c.Trees, secondTree), slices.ContainsFunc(c.Trees, thirdTree))
	}
	panic("fsm: a command outside the closed list")
}

func oldest(second, third bool) uint32 {
	switch {
	case third:
		return thirdFormat
	case second:
		return secondFormat
	}
	return firstFormat
}

func secondAllocate(c quota.Allocate) bool {
	return c.Mode != quota.Hold || c.ReserveFor != 0 || encodePrincipal(c.Principal) != nil ||
		slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return c.Standing != quota.Standing{} })
}

func thirdAllocate(c quota.Allocate) bool {
	return c.Mode == quota.Wait || c.TTL != 0 || c.WaitFor != 0 || c.Keep != 0 || c.Priority != 0 || len(c.Data) > 0 ||
		slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return len(c.Picks) > 0 })
}

func secondTree(t quota.TreeSpec) bool {
	return t.Forest != "" || t.RequireReason || t.Maintenance || len(t.Moves) > 0 || slices.ContainsFunc(t.Nodes, secondNode)
}

// secondNode also knows the policies of the first format: a member that refuses a policy which others know would hold
// another configuration from then on.
func secondNode(n quota.NodeSpec) bool {
	return n.Hard || n.Applications != 0 || len(n.Principals)+len(n.Defaults)+len(n.Borrow)+len(n.Lend)+len(n.Admins) > 0 ||
		!slices.Contains([]string{"", "open", "strict"}, n.Policy)
}

// resourcesBefore is how many resources a tree could have before the third format.
const resourcesBefore = 64

func thirdTree(t quota.TreeSpec) bool {
	return t.Leases != quota.LeaseSettings{} || t.Overtake != 0 || len(t.Resources) > resourcesBefore ||
		slices.ContainsFunc(t.Resources, func(r quota.Resource) bool { return r.Unit == quota.Items || r.Items != nil }) ||
		slices.ContainsFunc(t.Nodes, func(n quota.NodeSpec) bool { return n.Queueing != quota.InheritQueueing })
}

// snapshotFormat is the oldest format that has all of an image. Once an entry of a newer format was applied, it is that
// one: what such an entry leaves behind is not looked for in millions of records.
func snapshotFormat(applied uint32, image *ledger.Snapshot) uint32 {
	undoable := func(r *quota.Revision) bool { return r.Undoable || len(r.Undo) > 0 }
	if image.Header.Event > 0 || slices.ContainsFunc(image.Revisions(), undoable) {
		return max(secondFormat, applied)
	}
	return applied
}

// writtenFormat is the format of entries as a header says it: the first one is not mentioned.
func writtenFormat(applied uint32) uint32 {
	if applied == firstFormat {
		return 0
	}
	return applied
}
