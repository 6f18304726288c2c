package fsm

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// EntryFormat is the newest format of entries that this version writes and understands: the node's feature level.
const EntryFormat uint32 = 2

const (
	firstFormat  uint32 = 1
	secondFormat uint32 = 2
)

// formatOf is the oldest format that has all of a command. Entries are written in no newer one than they need, so that
// a cluster in the middle of an upgrade goes on with what all of its members understand (docs/adr/0009).
func formatOf(c quota.Command) uint32 {
	second := true
	switch c := c.(type) {
	case quota.Release, quota.SetLimits, quota.DeleteTree:
		second = false
	case quota.Allocate:
		second = c.Mode != quota.Hold || c.ReserveFor != 0 || encodePrincipal(c.Principal) != nil ||
			slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return c.Standing != quota.Standing{} })
	case quota.ApplyTrees:
		second = c.Prune || slices.ContainsFunc(c.Trees, secondTree)
	case quota.Confirm, quota.Cancel, quota.Expire, quota.MoveNode, quota.SetMaintenance, quota.RollBack:
	}
	if second {
		return secondFormat
	}
	return firstFormat
}

func secondTree(t quota.TreeSpec) bool {
	return t.TreeSettings != quota.TreeSettings{} || len(t.Moves) > 0 || slices.ContainsFunc(t.Nodes, secondNode)
}

// secondNode also knows the policies of the first format: a member that refuses a policy which others know would hold
// another configuration from then on.
func secondNode(n quota.NodeSpec) bool {
	return n.Hard || n.Applications != 0 || len(n.Principals)+len(n.Defaults)+len(n.Borrow)+len(n.Lend)+len(n.Admins) > 0 ||
		!slices.Contains([]string{"", "open", "strict"}, n.Policy)
}

// snapshotFormat is the oldest format that has all of an image. Once an entry of a newer format was applied, it is that
// one: what such an entry leaves behind is not looked for in millions of records.
func snapshotFormat(applied uint32, image *quota.Image) uint32 {
	undoable := func(r *quota.Revision) bool { return r.Undoable || len(r.Undo) > 0 }
	if image.Header.Event > 0 || slices.ContainsFunc(image.Revisions(), undoable) {
		return secondFormat
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
