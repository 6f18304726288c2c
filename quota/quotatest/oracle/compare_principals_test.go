package oracle

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// comparePrincipals reads what each user and group of a tree holds, from the list and by name.
func (p *pair) comparePrincipals(t *rapid.T, spec quota.TreeSpec) {
	for _, kind := range []quota.HolderKind{quota.AUser, quota.AGroup} {
		list, more, refused := p.ledger.Reader().Principals(spec.Name, kind, "", "", 100)
		if refused != nil || more {
			t.Fatal(refused, more)
		}
		quotatest.RequireSame(t, "who holds what of "+spec.Name, p.oracle.principals(spec, kind), list)
		for _, name := range quotatest.HolderNames {
			list, _, refused := p.ledger.Reader().Principals(spec.Name, kind, name, "", 100)
			if refused != nil {
				t.Fatal(refused)
			}
			quotatest.RequireSame(t, "what "+name+" holds of "+spec.Name,
				p.oracle.principal(spec, quota.Holder{Kind: kind, Name: name}, true), list)
		}
	}
}

// principalsOver lists the limits of users, groups and applications that are exceeded at a node.
func (o *oracle) principalsOver(spec quota.TreeSpec, path string) []quota.Overuse {
	var list []quota.Overuse
	n := quotatest.FindNode(spec, path)
	if n == nil {
		return nil
	}
	for _, kind := range []quota.HolderKind{quota.AUser, quota.AGroup} {
		if len(n.Principals) == 0 {
			break
		}
		for _, u := range o.principals(spec, kind) {
			for _, at := range u.Nodes {
				if at.Path == path {
					list = append(list, overAt(spec.Name, at, quota.Holder{Kind: kind, Name: u.Name})...)
				}
			}
		}
	}
	running, most := quota.Amount(len(o.running(spec.Name, path))), n.Applications
	if most.Kind == quota.Limited && running > most.Amount {
		list = append(list, quota.Overuse{
			Tree: spec.Name, Node: path, Kind: quota.OfApplications, Limit: n.Applications.Amount, Used: running,
		})
	}
	return list
}

func overAt(tree string, at quota.PrincipalNode, who quota.Holder) []quota.Overuse {
	var list []quota.Overuse
	for _, most := range at.Limits {
		for _, used := range at.Used {
			if used.Resource == most.Resource && used.Amount > most.Amount {
				list = append(list, quota.Overuse{
					Tree: tree, Node: at.Path, Resource: most.Resource, Holder: who, Limit: most.Amount,
					Used: used.Amount,
				})
			}
		}
	}
	running, most := quota.Amount(len(at.Applications)), at.MaxApplications
	if most.Kind == quota.Limited && running > most.Amount {
		list = append(list, quota.Overuse{
			Tree: tree, Node: at.Path, Kind: quota.OfApplications, Holder: who,
			Limit: at.MaxApplications.Amount, Used: running,
		})
	}
	return list
}

// principals lists all that hold something in a tree or are named there.
func (o *oracle) principals(spec quota.TreeSpec, kind quota.HolderKind) []quota.PrincipalUsage {
	var list []quota.PrincipalUsage
	for _, name := range quotatest.HolderNames {
		list = append(list, o.principal(spec, quota.Holder{Kind: kind, Name: name}, false)...)
	}
	return list
}

// principal is one user or group; asked is true if it is not one of a list but was asked for.
func (o *oracle) principal(spec quota.TreeSpec, who quota.Holder, asked bool) []quota.PrincipalUsage {
	if who.Kind == quota.AUser && who.Name == quota.Wildcard {
		return nil
	}
	u := quota.PrincipalUsage{Name: who.Name}
	for _, n := range spec.Nodes {
		namedBelow := slices.ContainsFunc(spec.Nodes, func(other quota.NodeSpec) bool {
			return isNamed(&other, who) && slices.Contains(quotatest.Upwards(other.Path), n.Path)
		})
		if at := o.principalAt(spec, &n, who, asked || namedBelow); at != nil {
			u.Nodes = append(u.Nodes, *at)
		}
	}
	if who.Kind == quota.AUser {
		u.Groups = o.groupsOf(spec.Name, who.Name)
	} else {
		u.Users = o.usersOf(spec.Name, who.Name)
	}
	if len(u.Nodes) == 0 {
		return nil
	}
	if who.Kind == quota.AGroup && asked {
		for i := range u.Nodes {
			u.Nodes[i].Members = o.membersAt(spec, u.Nodes[i].Path, who.Name)
		}
	}
	return []quota.PrincipalUsage{u}
}

// isNamed is true if a limit of the node is for the user or group itself.
func isNamed(n *quota.NodeSpec, who quota.Holder) bool {
	l := quotatest.PrincipalLimit(n, who)
	return l != nil && (who.Kind == quota.AGroup || slices.Contains(l.Users, who.Name))
}

// principalAt is nil where the principal holds nothing and is not named; limited says that a limit for all users is
// enough.
func (o *oracle) principalAt(spec quota.TreeSpec, n *quota.NodeSpec, who quota.Holder, limited bool,
) *quota.PrincipalNode {
	used, running := o.holds(spec.Name, n.Path, who)
	l, named := quotatest.PrincipalLimit(n, who), isNamed(n, who)
	if used == nil && !named && (l == nil || !limited) {
		return nil
	}
	at := &quota.PrincipalNode{Path: n.Path, Applications: running}
	for _, r := range spec.Resources {
		if a := used[r.Name]; a > 0 {
			at.Used = append(at.Used, quota.Component{Resource: r.Name, Amount: a})
		}
	}
	if l != nil {
		at.Limits, at.MaxApplications, at.Wildcard = l.Limits, l.Applications, !named
	}
	return at
}

func (o *oracle) groupsOf(tree, user string) []quota.Label {
	var list []quota.Label
	for _, h := range o.held() {
		for i, c := range h.request.Claims {
			l := quota.Label{Key: h.asked.Principal.Application, Value: h.groups[i]}
			if c.Tree == tree && h.asked.Principal.User == user && l.Key != "" && l.Value != "" && !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	slices.SortFunc(list, func(a, b quota.Label) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// membersAt are the users of a group at a node, with what they alone hold there for it.
func (o *oracle) membersAt(spec quota.TreeSpec, path, group string) []quota.GroupMember {
	var list []quota.GroupMember
	for _, user := range o.usersOf(spec.Name, group) {
		alone := *o
		alone.allocations = slices.DeleteFunc(o.held(), func(h *allocation) bool { return h.asked.Principal.User != user })
		used, running := alone.holds(spec.Name, path, quota.Holder{Kind: quota.AGroup, Name: group})
		if used == nil {
			continue
		}
		member := quota.GroupMember{User: user, Applications: running}
		for _, r := range spec.Resources {
			if a := used[r.Name]; a > 0 {
				member.Used = append(member.Used, quota.Component{Resource: r.Name, Amount: a})
			}
		}
		list = append(list, member)
	}
	return list
}

// usersOf are the users with a claim that is counted for a group.
func (o *oracle) usersOf(tree, group string) []string {
	var list []string
	for _, h := range o.held() {
		for i, c := range h.request.Claims {
			if c.Tree == tree && h.groups[i] == group {
				list = append(list, h.asked.Principal.User)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
