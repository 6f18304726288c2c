package ledger_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// holdersModel is the slow, obviously right account of users, groups, applications and cohorts: it keeps the requests
// that are held and adds them up again for every question.
type holdersModel struct {
	trees map[string]quota.TreeSpec
	held  []holderOf
}

// holderOf is a held request with the place and the group of each claim.
type holderOf struct {
	quota.Allocate
	placed, groups []string
}

// place finds the known node and the group of every claim.
func (m *holdersModel) place(c quota.Allocate) holderOf {
	h := holderOf{Allocate: c}
	for _, claim := range c.Claims {
		at := claim.Node
		for quotatest.FindNode(m.trees[claim.Tree], at) == nil {
			at = quotatest.Above(at)
		}
		h.placed = append(h.placed, at)
		h.groups = append(h.groups, "") // not one of the earlier ones yet
		h.groups[len(h.groups)-1] = m.group(h, len(h.groups)-1)
	}
	return h
}

func (m *holdersModel) group(h holderOf, i int) string {
	tree := h.Claims[i].Tree
	for j := range i {
		if h.Claims[j].Tree == tree {
			return h.groups[j]
		}
	}
	for _, other := range m.held {
		for j, c := range other.Claims {
			if c.Tree == tree && h.Principal.Application != "" && samePerson(h, other) &&
				other.Principal.Application == h.Principal.Application {
				return other.groups[j]
			}
		}
	}
	if len(h.Principal.Groups) == 0 {
		return ""
	}
	for _, path := range quotatest.Upwards(h.placed[i]) {
		for _, l := range quotatest.FindNode(m.trees[tree], path).Principals {
			for _, g := range l.Groups {
				if g == quota.Wildcard || slices.Contains(h.Principal.Groups, g) {
					return g
				}
			}
		}
	}
	return ""
}

func samePerson(a, b holderOf) bool { return a.Principal.User == b.Principal.User }

// lacksUser is true if a request names no user, and one is required because of a limit on the way of a claim.
func (m *holdersModel) lacksUser(c quota.Allocate) bool {
	h := m.place(c)
	for i, claim := range c.Claims {
		spec := m.trees[claim.Tree]
		for _, path := range quotatest.Upwards(h.placed[i]) {
			if spec.RequirePrincipal && c.Principal.User == "" && len(quotatest.FindNode(spec, path).Principals) > 0 {
				return true
			}
		}
	}
	return false
}

// decide says what a request would violate, in the order that is promised.
func (m *holdersModel) decide(c quota.Allocate) (holderOf, []quota.Violation) {
	h := m.place(c)
	if c.Mode == quota.Force {
		return h, nil
	}
	list := m.overLimits(h, m.plainViolation)
	list = append(list, m.overLimits(h, m.cohortViolation)...)
	return h, append(list, m.principalViolations(h)...)
}

// overLimits asks about every node on the way of every claim once, for the sum of all claims.
func (m *holdersModel) overLimits(h holderOf,
	ask func(h holderOf, tree, path, resource string, want quota.Amount) []quota.Violation,
) []quota.Violation {
	var list []quota.Violation
	asked := map[string]bool{}
	for i, c := range h.Claims {
		for _, path := range quotatest.Upwards(h.placed[i]) {
			for _, r := range m.trees[c.Tree].Resources {
				want, named := quotatest.Requested(h.Claims, h.placed, c.Tree, path, r.Name)
				if key := c.Tree + ":" + path + " " + r.Name; named && !asked[key] {
					asked[key] = true
					list = append(list, ask(h, c.Tree, path, r.Name, quota.Amount(want.Int64()))...)
				}
			}
		}
	}
	return list
}

func (m *holdersModel) plainViolation(_ holderOf, tree, path, resource string, want quota.Amount) []quota.Violation {
	spec, used := m.trees[tree], m.used(m.held, tree, path, resource)
	limit := limitOf(quotatest.FindNode(spec, path).Limits, resource, quota.NoLimit())
	if quotatest.PolicyOf(spec, path) == "cohort" || limit.Kind == quota.Unlimited || used+want <= limit.Amount {
		return nil
	}
	return []quota.Violation{
		{Tree: tree, Node: path, Resource: resource, Limit: limit.Amount, Used: used, Requested: want},
	}
}

func limitOf(limits []quota.ResourceLimit, resource string, otherwise quota.Limit) quota.Limit {
	for _, l := range limits {
		if l.Resource == resource {
			return l.Limit
		}
	}
	return otherwise
}

func (m *holdersModel) used(held []holderOf, tree, path, resource string) quota.Amount {
	sum := quota.Amount(0)
	for _, h := range held {
		more, _ := quotatest.Requested(h.Claims, h.placed, tree, path, resource)
		sum += quota.Amount(more.Int64())
	}
	return sum
}

// principalViolations asks every level about the user, the group and the applications.
func (m *holdersModel) principalViolations(h holderOf) []quota.Violation {
	var list []quota.Violation
	asked := map[string]bool{}
	for i, c := range h.Claims {
		for _, path := range quotatest.Upwards(h.placed[i]) {
			if key := c.Tree + ":" + path; !asked[key] && h.Principal.User != "" {
				asked[key] = true
				list = append(list, m.violationsAt(h, i, path)...)
			}
		}
	}
	return list
}

func (m *holdersModel) violationsAt(h holderOf, i int, path string) []quota.Violation {
	tree := h.Claims[i].Tree
	n := quotatest.FindNode(m.trees[tree], path)
	list := m.holderViolations(h, tree, n, quota.Holder{Kind: quota.AUser, Name: h.Principal.User})
	if h.groups[i] != "" {
		list = append(list, m.holderViolations(h, tree, n, quota.Holder{Kind: quota.AGroup, Name: h.groups[i]})...)
	}
	running := map[quota.Label]bool{}
	for _, other := range m.held {
		for j, c := range other.Claims {
			if c.Tree == tree && quotatest.Below(other.placed[j], path) && other.Principal.Application != "" {
				running[quota.Label{Key: other.Principal.User, Value: other.Principal.Application}] = true
			}
		}
	}
	me := quota.Label{Key: h.Principal.User, Value: h.Principal.Application}
	if n.Applications > 0 && h.Principal.Application != "" && !running[me] &&
		quota.Amount(len(running)) >= n.Applications {
		list = append(list, quota.Violation{
			Tree: tree, Node: path, Kind: quota.OfApplications, Limit: n.Applications,
			Used: quota.Amount(len(running)), Requested: 1,
		})
	}
	return list
}

func (m *holdersModel) holderViolations(h holderOf, tree string, n *quota.NodeSpec,
	who quota.Holder,
) []quota.Violation {
	l := principalLimit(n, who)
	if l == nil {
		return nil
	}
	used, running := m.holds(tree, n.Path, who)
	var list []quota.Violation
	for _, most := range l.Limits {
		want, _ := quotatest.Requested(h.Claims, h.placed, tree, n.Path, most.Resource)
		if a := quota.Amount(want.Int64()); a > 0 && used[most.Resource]+a > most.Amount {
			list = append(list, quota.Violation{
				Tree: tree, Node: n.Path, Resource: most.Resource, Limit: most.Amount, Used: used[most.Resource],
				Requested: a, Holder: who,
			})
		}
	}
	count := quota.Amount(len(running))
	if l.Applications > 0 && h.Principal.Application != "" && !slices.Contains(running, h.Principal.Application) &&
		count >= l.Applications {
		list = append(list, quota.Violation{
			Tree: tree, Node: n.Path, Kind: quota.OfApplications, Limit: l.Applications, Used: count,
			Requested: 1, Holder: who,
		})
	}
	return list
}

// principalLimit is the entry that names the principal, or for a user the wildcard's.
func principalLimit(n *quota.NodeSpec, who quota.Holder) *quota.PrincipalLimit {
	var everybody *quota.PrincipalLimit
	for i := range n.Principals {
		l := &n.Principals[i]
		switch {
		case who.Kind == quota.AUser && slices.Contains(l.Users, who.Name), who.Kind == quota.AGroup &&
			slices.Contains(l.Groups, who.Name):
			return l
		case who.Kind == quota.AUser && slices.Contains(l.Users, quota.Wildcard):
			everybody = l
		}
	}
	return everybody
}

// holds is what a principal holds at a node, and which applications run there, sorted; nil if nothing is held at all.
func (m *holdersModel) holds(tree, path string, who quota.Holder) (map[string]quota.Amount, []string) {
	var used map[string]quota.Amount
	running := []string{}
	for _, h := range m.held {
		for i, c := range h.Claims {
			name := h.Principal.User
			if who.Kind == quota.AGroup {
				name = h.groups[i]
			}
			if name != who.Name || c.Tree != tree || !quotatest.Below(h.placed[i], path) {
				continue
			}
			if used == nil {
				used = map[string]quota.Amount{}
			}
			for _, a := range c.Amounts {
				used[a.Resource] += a.Amount
			}
			if app := h.Principal.Application; app != "" && !slices.Contains(running, app) {
				running = append(running, app)
			}
		}
	}
	slices.Sort(running)
	return used, running
}

// over lists the limits of users, groups and applications that are exceeded.
func (m *holdersModel) over(spec quota.TreeSpec) []quota.Overuse {
	nodes := slices.Clone(spec.Nodes)
	slices.SortFunc(nodes, func(a, b quota.NodeSpec) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	var list []quota.Overuse
	for _, n := range nodes {
		running := quota.Amount(0)
		for _, kind := range []quota.HolderKind{quota.AUser, quota.AGroup} {
			for _, u := range m.principals(spec, kind) {
				for _, at := range u.Nodes {
					if at.Path != n.Path {
						continue
					}
					if kind == quota.AUser {
						running += quota.Amount(len(at.Applications))
					}
					list = append(list, overAt(spec.Name, at, quota.Holder{Kind: kind, Name: u.Name})...)
				}
			}
		}
		if n.Applications > 0 && running > n.Applications {
			list = append(list, quota.Overuse{
				Tree: spec.Name, Node: n.Path, Kind: quota.OfApplications, Limit: n.Applications, Used: running,
			})
		}
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
	if running := quota.Amount(len(at.Applications)); at.MaxApplications > 0 && running > at.MaxApplications {
		list = append(list, quota.Overuse{
			Tree: tree, Node: at.Path, Kind: quota.OfApplications, Holder: who,
			Limit: at.MaxApplications, Used: running,
		})
	}
	return list
}

// holderNames are all users and groups of the random histories, sorted.
var holderNames = []string{"*", "ann", "blue", "bob", "cyd", "green", "red", "white"}

// principals lists all that hold something in a tree or are named there.
func (m *holdersModel) principals(spec quota.TreeSpec, kind quota.HolderKind) []quota.PrincipalUsage {
	var list []quota.PrincipalUsage
	for _, name := range holderNames {
		list = append(list, m.principal(spec, quota.Holder{Kind: kind, Name: name}, false)...)
	}
	return list
}

// principal is one user or group; asked is true if it is not one of a list but was asked for.
func (m *holdersModel) principal(spec quota.TreeSpec, who quota.Holder, asked bool) []quota.PrincipalUsage {
	if who.Kind == quota.AUser && who.Name == quota.Wildcard {
		return nil
	}
	u := quota.PrincipalUsage{Name: who.Name}
	for _, n := range spec.Nodes {
		namedBelow := slices.ContainsFunc(spec.Nodes, func(other quota.NodeSpec) bool {
			return isNamed(&other, who) && slices.Contains(quotatest.Upwards(other.Path), n.Path)
		})
		if at := m.principalAt(spec, &n, who, asked || namedBelow); at != nil {
			u.Nodes = append(u.Nodes, *at)
		}
	}
	if who.Kind == quota.AUser {
		u.Groups = m.groupsOf(spec.Name, who.Name)
	} else {
		u.Users = m.usersOf(spec.Name, who.Name)
	}
	if len(u.Nodes) == 0 {
		return nil
	}
	if who.Kind == quota.AGroup && asked {
		for i := range u.Nodes {
			u.Nodes[i].Members = m.membersAt(spec, u.Nodes[i].Path, who.Name)
		}
	}
	return []quota.PrincipalUsage{u}
}

// isNamed is true if a limit of the node is for the user or group itself.
func isNamed(n *quota.NodeSpec, who quota.Holder) bool {
	l := principalLimit(n, who)
	return l != nil && (who.Kind == quota.AGroup || slices.Contains(l.Users, who.Name))
}

// principalAt is nil where the principal holds nothing and is not named; limited says that a limit for all users is
// enough.
func (m *holdersModel) principalAt(spec quota.TreeSpec, n *quota.NodeSpec, who quota.Holder, limited bool,
) *quota.PrincipalNode {
	used, running := m.holds(spec.Name, n.Path, who)
	l, named := principalLimit(n, who), isNamed(n, who)
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

func (m *holdersModel) groupsOf(tree, user string) []quota.Label {
	var list []quota.Label
	for _, h := range m.held {
		for i, c := range h.Claims {
			l := quota.Label{Key: h.Principal.Application, Value: h.groups[i]}
			if c.Tree == tree && h.Principal.User == user && l.Key != "" && l.Value != "" && !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	slices.SortFunc(list, func(a, b quota.Label) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// membersAt are the users of a group at a node, with what they alone hold there for it.
func (m *holdersModel) membersAt(spec quota.TreeSpec, path, group string) []quota.GroupMember {
	var list []quota.GroupMember
	for _, user := range m.usersOf(spec.Name, group) {
		alone := holdersModel{trees: m.trees}
		for _, h := range m.held {
			if h.Principal.User == user {
				alone.held = append(alone.held, h)
			}
		}
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
func (m *holdersModel) usersOf(tree, group string) []string {
	var list []string
	for _, h := range m.held {
		for i, c := range h.Claims {
			if c.Tree == tree && h.groups[i] == group {
				list = append(list, h.Principal.User)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
