package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// permit refuses a change that a tree, as it is before, does not allow: without a reason where one is required, or by an
// actor who is none of its admins. A change that changes nothing of a tree needs nothing of it.
func (f *forest) permit(m quota.ChangeMeta, changes []quota.Change) *quota.Error {
	for len(changes) > 0 {
		name := changes[0].Tree
		end := slices.IndexFunc(changes, func(c quota.Change) bool { return c.Tree != name })
		if end < 0 {
			end = len(changes)
		}
		if t := f.trees[name]; t != nil {
			if t.settings.RequireReason && m.Reason == "" {
				return quota.Errorf(quota.Invalid, "reason", "changes of tree %s need a reason; give one", name)
			}
			if err := t.permit(m.Actor, changes[:end]); err != nil {
				return err
			}
		}
		changes = changes[end:]
	}
	return nil
}

// permit asks who may change limits node by node. Whatever else changes is the root admins' business, and so are all
// limits that change along with it.
func (t *tree) permit(actor string, changes []quota.Change) *quota.Error {
	switch {
	case !t.governed || t.root.hasAdmin(actor):
		if !t.governed || !onlyLimits(changes) {
			return nil
		}
	case !onlyLimits(changes):
		return quota.Errorf(quota.Forbidden, "actor", "%s may not change tree %s beyond limits of single nodes; its admins may: %s", who(actor), t.name, t.root.adminNames())
	}
	for _, c := range changes {
		if err := t.byPath[c.Node].permitLimits(actor); err != nil {
			return err
		}
	}
	return nil
}

func onlyLimits(changes []quota.Change) bool {
	return !slices.ContainsFunc(changes, func(c quota.Change) bool { return !strings.HasPrefix(c.Field, "limit ") })
}

// permitLimits refuses to let an actor set the limits of the node. The policy of the parent says whose admins may.
func (n *node) permitLimits(actor string) *quota.Error {
	if n.parent == nil {
		if n.hasAdmin(actor) {
			return nil
		}
		return quota.Errorf(quota.Forbidden, "actor", "%s may not set limits of the root of tree %s; its admins may: %s", who(actor), n.treeName, n.adminNames())
	}
	if n.parent.policy.LimitSetters == policy.SetByParent {
		if n.parent.hasAdmin(actor) {
			return nil
		}
		return quota.Errorf(quota.Forbidden, "actor", "%s may not set limits of %s; under policy %s the admins of its parent %s may: %s",
			who(actor), n.place(), n.parent.policy.Name, n.parent.place(), n.parent.adminNames())
	}
	for up := n.parent; up != nil; up = up.parent {
		if up.hasAdmin(actor) {
			return nil
		}
	}
	return quota.Errorf(quota.Forbidden, "actor", "%s may not set limits of %s; under policy %s the admins of the nodes above it may: those of the tree are %s",
		who(actor), n.place(), n.parent.policy.Name, n.tree.root.adminNames())
}

// maxSetters bounds how many names of those who may set a limit a remedy has.
const maxSetters = 10

// limitSetters are the first of those who may set the limits of the node, sorted, by the rules of permit; false if the tree names no
// admins, and anyone may.
func (n *node) limitSetters() (list []string, governed bool) {
	if !n.tree.governed {
		return nil, false
	}
	switch {
	case n.parent == nil:
		list = n.spec.Admins
	case n.parent.policy.LimitSetters == policy.SetByParent:
		list = n.parent.spec.Admins
	default:
		for up := n.parent; up != nil && len(list) == 0; up = up.parent {
			list = up.spec.Admins
		}
	}
	return slices.Clone(list[:min(len(list), maxSetters)]), true
}

func (n *node) hasAdmin(actor string) bool {
	_, found := slices.BinarySearch(n.spec.Admins, actor)
	return found
}

// adminNames lists the node's admins for people, the first few of many.
func (n *node) adminNames() string {
	const shown = 10
	switch admins := n.spec.Admins; {
	case len(admins) == 0:
		return "there are none; an admin of the tree can name some"
	case len(admins) > shown:
		return strings.Join(admins[:shown], ", ") + " and others"
	default:
		return strings.Join(admins, ", ")
	}
}

// who names an actor, who may have no name.
func who(actor string) string {
	if actor == "" {
		return "nobody in particular"
	}
	return actor
}
