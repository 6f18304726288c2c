package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// permitApply asks for the right to read each tree, or to create it, before anything is compared; of a change of one
// subtree, for the right to read that.
func (g guard) permitApply(c quota.ApplyTrees) *quota.Error {
	if c.At != nil {
		return g.needVerb(access.ConfigRead, c.At.Tree, c.At.Node, "at")
	}
	if c.Prune {
		if err := g.needCluster(access.ConfigRead); err != nil {
			return err
		}
	}
	for i, t := range c.Trees {
		is := g.forest.trees[t.Name]
		if is == nil && g.may(access.TreeCreate, nil) {
			continue
		}
		field := fmt.Sprintf("trees[%d].name", i)
		if err := g.needVerb(access.ConfigRead, t.Name, "", field); err != nil {
			if part := g.readableNode(is); part != nil {
				return quota.Errorf(quota.Forbidden, field,
					"%s may not read tree %s as a whole; apply the text of a subtree alone with --at %s", g.caller.name(), t.Name,
					part.place())
			}
			return err
		}
	}
	if err := g.permitParts(c); err != nil {
		return err
	}
	return g.permitNames(c)
}

// readableNode is the first node of a tree whose configuration the caller may read; nil if there is none.
func (g guard) readableNode(t *tree) *node {
	if t == nil {
		return nil
	}
	var found *node
	t.root.walk(func(n *node) bool {
		if found == nil && !n.dynamic && g.may(access.ConfigRead, n) {
			found = n
		}
		return found == nil
	})
	return found
}

// permitParts asks for the rights to what a change names beside trees. A part may be repeated as it is by those who may
// read it, because that is how a whole document is applied; for others the refusal would tell.
func (g guard) permitParts(c quota.ApplyTrees) *quota.Error {
	isEmpty := len(c.Trees)+len(c.Policies)+len(c.RemovePolicies) == 0 && c.Access == nil && !c.Prune
	if isEmpty { // it is answered from the history alone, if it repeats a request or expects a revision
		if err := g.needCluster(access.ConfigRead); err != nil {
			return err
		}
	}
	if c.Access != nil {
		if err := g.needCluster(g.verbForSection(*c.Access)); err != nil {
			return err
		}
	}
	if len(c.RemovePolicies) > 0 {
		if err := g.needCluster(access.PolicySet); err != nil {
			return err
		}
	}
	if len(c.Policies) == 0 || g.may(access.PolicySet, nil) || g.may(access.ConfigRead, nil) {
		return nil
	}
	read := g.readablePolicies()
	for i, p := range c.Policies {
		if !slices.Contains(read, p) {
			return lackingVerb(quota.Errorf(quota.Forbidden, fmt.Sprintf("policies[%d]", i),
				"%s lacks the right %s at the cluster, which definitions of policies need; leave out those that the "+
					"trees of the change do not use", g.caller.name(), access.PolicySet), access.PolicySet, nil)
		}
	}
	return nil
}

// verbForSection is the right that an access section needs before it is compared: to read it, if it is the present one
// and the caller may know that.
func (g guard) verbForSection(wanted access.Section) access.Verb {
	if !g.may(access.AccessRead, nil) {
		return access.AccessManage
	}
	change, err := g.env.book.Apply(access.ReplaceSection{Section: wanted}, accessMoment(g.callerRights, g.forest))
	if err != nil || len(change.Differences) > 0 {
		return access.AccessManage
	}
	return access.AccessRead
}

// readablePolicies are the definitions that the trees use whose root the caller may read, as Reader.Policies.
func (g guard) readablePolicies() []quota.PolicySpec {
	var list []quota.PolicySpec
	for _, t := range g.forest.trees { // in any order, because callers only look whether one is there
		if g.may(access.ConfigRead, t.root) {
			list = append(list, t.usedPolicies()...)
		}
	}
	return list
}

// permitNames refuses policies and roles that do not exist without the list of those that do, unless the caller may
// read it.
func (g guard) permitNames(c quota.ApplyTrees) *quota.Error {
	policies, roles := g.may(access.ConfigRead, nil), g.may(access.AccessRead, nil) || c.Access != nil
	if policies && roles {
		return nil
	}
	for i, t := range c.Trees {
		for j, n := range t.Nodes {
			field := nodeField(fmt.Sprintf("trees[%d]", i), j)
			if !policies && n.Policy != "" && !g.knowsPolicy(c, n.Policy) {
				return quota.Errorf(quota.Invalid, field+".policy", "there is no policy %q", quota.Clip(n.Policy))
			}
			for k, b := range n.Bindings {
				if _, known := g.env.book.Roles().Find(b.Role); !roles && !known {
					return quota.Errorf(quota.Invalid, fmt.Sprintf("%s.bindings[%d].role", field, k), "%q is not a role",
						quota.Clip(b.Role))
				}
			}
		}
	}
	return nil
}

// knowsPolicy is true for a policy that exists or that the change defines.
func (g guard) knowsPolicy(c quota.ApplyTrees, name string) bool {
	return g.forest.policies.find(name) != nil ||
		slices.ContainsFunc(c.Policies, func(p quota.PolicySpec) bool { return p.Name == name })
}
