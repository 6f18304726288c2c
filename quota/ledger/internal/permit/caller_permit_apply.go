package permit

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// permitApply asks for the right to read each tree, or to create it, before anything is compared; of a change of one
// subtree, for the right to read that.
func (g Guard) permitApply(c quota.ApplyTrees) *quota.Error {
	if c.At != nil {
		return g.needVerb(access.ConfigRead, c.At.Tree, c.At.Node, "subtree")
	}
	if c.Prune {
		if err := g.NeedCluster(access.ConfigRead); err != nil {
			return err
		}
	}
	for i, t := range c.Trees {
		current := g.forest.Trees[t.Name]
		if current == nil && g.May(access.TreeCreate, nil) {
			continue
		}
		field := fmt.Sprintf("trees[%d].name", i)
		if err := g.needVerb(access.ConfigRead, t.Name, "", field); err != nil {
			if part := g.readableNode(current); part != nil {
				return quota.Errorf(quota.Forbidden, field,
					"%s may not read tree %s as a whole; apply the text of a subtree alone with --at %s", g.Caller.Name(), t.Name,
					part.Place())
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
func (g Guard) readableNode(t *state.Tree) *state.Node {
	if t == nil {
		return nil
	}
	var found *state.Node
	t.Root.Walk(func(n *state.Node) bool {
		if found == nil && !n.Dynamic && g.May(access.ConfigRead, n) {
			found = n
		}
		return found == nil
	})
	return found
}

// permitParts asks for the rights to what a change names beside trees. A part may be repeated as it is by those who may
// read it, because that is how a whole document is applied; for others the refusal would tell.
func (g Guard) permitParts(c quota.ApplyTrees) *quota.Error {
	isEmpty := len(c.Trees)+len(c.Policies)+len(c.RemovePolicies) == 0 && c.Access == nil && !c.Prune
	if isEmpty { // it is answered from the history alone, if it repeats a request or expects a revision
		if err := g.NeedCluster(access.ConfigRead); err != nil {
			return err
		}
	}
	if c.Access != nil {
		if err := g.NeedCluster(g.verbForSection(*c.Access)); err != nil {
			return err
		}
	}
	if len(c.RemovePolicies) > 0 {
		if err := g.NeedCluster(access.PolicySet); err != nil {
			return err
		}
	}
	if len(c.Policies) == 0 || g.May(access.PolicySet, nil) || g.May(access.ConfigRead, nil) {
		return nil
	}
	read := g.readablePolicies()
	for i, p := range c.Policies {
		if !slices.Contains(read, p) {
			return state.LackingVerb(quota.Errorf(quota.Forbidden, fmt.Sprintf("policies[%d]", i),
				"%s lacks the right %s at the cluster, which definitions of policies need; leave out those that the "+
					"trees of the change do not use", g.Caller.Name(), access.PolicySet), access.PolicySet, nil)
		}
	}
	return nil
}

// verbForSection is the right that an access section needs before it is compared: to read it, if it is the present one
// and the caller may know that.
func (g Guard) verbForSection(wanted access.Section) access.Verb {
	if !g.May(access.AccessRead, nil) {
		return access.AccessManage
	}
	moment := configure.AccessMoment(g.CallerRights, g.forest)
	change, err := g.Env.Book.Apply(access.ReplaceSection{Section: wanted}, moment)
	if err != nil || len(change.Differences) > 0 {
		return access.AccessManage
	}
	return access.AccessRead
}

// readablePolicies are the definitions that the trees use whose root the caller may read, as Reader.Policies.
func (g Guard) readablePolicies() []quota.PolicySpec {
	var list []quota.PolicySpec
	for _, t := range g.forest.Trees { // in any order, because callers only look whether one is there
		if g.May(access.ConfigRead, t.Root) {
			list = append(list, configure.UsedPolicies(t)...)
		}
	}
	return list
}

// permitNames refuses policies and roles that do not exist without the list of those that do, unless the caller may
// read it.
func (g Guard) permitNames(c quota.ApplyTrees) *quota.Error {
	policies, roles := g.May(access.ConfigRead, nil), g.May(access.AccessRead, nil) || c.Access != nil
	if policies && roles {
		return nil
	}
	for i, t := range c.Trees {
		for j, n := range t.Nodes {
			field := configure.NodeField(fmt.Sprintf("trees[%d]", i), j)
			if !policies && n.Policy != "" && !g.knowsPolicy(c, n.Policy) {
				return quota.Errorf(quota.Invalid, field+".policy", "there is no policy %q", quota.Clip(n.Policy))
			}
			for k, b := range n.Bindings {
				if _, known := g.Env.Book.Roles().Find(b.Role); !roles && !known {
					return quota.Errorf(quota.Invalid, fmt.Sprintf("%s.bindings[%d].role", field, k), "%q is not a role",
						quota.Clip(b.Role))
				}
			}
		}
	}
	return nil
}

func (g Guard) knowsPolicy(c quota.ApplyTrees, name string) bool {
	return g.forest.Policies.Find(name) != nil ||
		slices.ContainsFunc(c.Policies, func(p quota.PolicySpec) bool { return p.Name == name })
}
