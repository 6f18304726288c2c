package ledger

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// accounts are what users and groups hold in a tree. All of it follows from the held claims, and nobody is in it who
// holds nothing. What may be held is not here: the nodes have the rules.
type accounts struct {
	users, groups map[string]*holder
	tracks        map[trackKey]*track
	// members has, by application, the groups that it is counted in, by name: nearly always one.
	members map[memberKey][]membership
}

// holder is a user or a group that holds something in a tree.
type holder struct {
	quota.Holder
	at map[*node]*holding
}

// holding is what a holder holds in the subtree of a node.
type holding struct {
	of     *holder
	node   *node
	up     *holding       // at the node's parent
	used   []quota.Amount // by resource index
	claims int
	runs   map[string]*run // by application; the empty name has the claims of none
	// applications are how many run.
	applications int
	// of the rules that it was looked up in, the rule of this holder.
	lookedUp *rules
	rule     *rule
}

// run is the claims of one application in a holding.
type run struct {
	in          *holding
	up          *run // the same application, one level higher
	application string
	claims      int
}

// find answers what somebody holds in the tree, nil if nothing.
func (acc *accounts) find(who quota.Holder) *holder {
	if who.Kind == quota.AGroup {
		return acc.groups[who.Name]
	}
	return acc.users[who.Name]
}

// run finds the run of an application at a node, or begins it there and on every level above.
func (acc *accounts) run(who quota.Holder, home *node, application string) *run {
	h := acc.find(who)
	if h == nil {
		h = &holder{Holder: who, at: map[*node]*holding{}}
		acc.enter(h)
	}
	var first, last *run
	for n := home; n != nil; n = n.parent {
		r, began := h.run(n, application)
		if first == nil {
			first = r
		}
		if last != nil {
			last.up, last.in.up = r, r.in
		}
		if last = r; !began {
			break // so it runs above, too
		}
	}
	return first
}

func (acc *accounts) enter(h *holder) {
	list := &acc.users
	if h.Kind == quota.AGroup {
		list = &acc.groups
	}
	if *list == nil {
		*list = map[string]*holder{}
	}
	(*list)[h.Name] = h
}

func (acc *accounts) leave(h *holder) {
	if h.Kind == quota.AGroup {
		delete(acc.groups, h.Name)
	} else {
		delete(acc.users, h.Name)
	}
}

// run finds or begins a run at one node.
func (h *holder) run(n *node, application string) (r *run, began bool) {
	at := h.at[n]
	if at == nil {
		at = &holding{of: h, node: n, used: make([]quota.Amount, len(n.tree.resources)), runs: map[string]*run{}}
		h.at[n] = at
	}
	if r = at.runs[application]; r != nil {
		return r, false
	}
	r = &run{in: at, application: application}
	at.runs[application] = r
	at.countApplication(r, 1)
	return r, true
}

// add counts claims and what they hold on every level, or with a sign of -1 gives them back. What has become empty is
// forgotten.
func (r *run) add(amounts []placedAmount, claims int, sign quota.Amount) {
	for ; r != nil; r = r.up {
		r.claims += claims * int(sign)
		h := r.in
		h.claims += claims * int(sign)
		for _, p := range amounts {
			h.used[p.resource.index] += sign * p.amount
		}
		if r.claims == 0 {
			h.end(r)
		}
	}
}

// end forgets a run, and with the last one the holding.
func (h *holding) end(r *run) {
	delete(h.runs, r.application)
	h.countApplication(r, -1)
	if len(h.runs) > 0 {
		return
	}
	delete(h.of.at, h.node)
	if len(h.of.at) == 0 {
		h.node.tree.accounts.leave(h.of)
	}
}

// countApplication counts a run that begins or ends; at the node, each user's count apart.
func (h *holding) countApplication(r *run, n int) {
	if r.application == "" {
		return
	}
	h.applications += n
	if h.of.Kind == quota.AUser {
		h.node.applications += n
	}
}

// recount rebuilds the accounts along the present paths of their nodes: whoever moves nodes or changes the places of
// resources calls it. It costs as many steps as there are tracks, not claims.
func (t *tree) recount() {
	tracks := t.accounts.tracks
	t.accounts = accounts{}
	t.root.walk(func(n *node) bool {
		n.applications = 0
		return true
	})
	for _, tr := range tracks { // sums, in whatever order
		tr.enter()
		tr.count(tr.held, tr.claims, 1)
	}
}

// track is where claims of one principal with one home are counted: it knows the way through the accounts.
type track struct {
	trackKey
	claims int
	held   []placedAmount // what the claims add up to, without zeros, in any order
	// userRun and groupRun are those at the home while claims are counted; groupRun is nil if no group is counted.
	userRun, groupRun *run
}

type trackKey struct {
	user, application, group string
	home                     *node
}

// memberKey is an application in a tree: the same name under two users is two applications.
type memberKey struct{ user, application string }

// membership is a group with the tracks of one application that are counted in it.
type membership struct {
	group  string // empty for none
	tracks int
}

// track finds a track, or makes one that nothing is counted on yet.
func (acc *accounts) track(key trackKey) *track {
	if t := acc.tracks[key]; t != nil {
		return t
	}
	return &track{trackKey: key}
}

// trackPrincipal ties a claim to the track of its principal and group.
func (c *placedClaim) trackPrincipal(p quota.Principal) {
	if p.User != "" {
		home := c.home()
		c.ensureDetails().track = home.tree.accounts.track(trackKey{p.User, p.Application, c.group(), home})
	}
}

// ensureDetails are made when they are needed.
func (c *placedClaim) ensureDetails() *claimDetails {
	if c.more == nil {
		c.more = &claimDetails{}
	}
	return c.more
}

func (c *placedClaim) group() string {
	if c.more == nil {
		return ""
	}
	return c.more.group
}

// add counts a claim, or with -1 gives it back. A track on which nothing is counted may have a successor by now, and the
// claim another home: then it is counted there.
func (t *track) add(c *placedClaim, sign quota.Amount) {
	if home := c.home(); t.claims == 0 || t.home != home {
		key := t.trackKey
		key.home = home
		t = home.tree.accounts.track(key)
		c.more.track = t
	}
	if t.claims == 0 {
		t.enter()
	}
	t.claims += int(sign)
	for _, p := range c.amounts {
		t.hold(p.resource, sign*p.amount)
	}
	t.count(c.amounts, 1, sign)
	if t.claims == 0 {
		t.leave()
	}
}

// sameTrack ties the claim to the track of another record of it, on which it may have been taken out and counted again
// since: then the track that it knows has been left for a successor.
func (c *placedClaim) sameTrack(later *placedClaim) {
	if later.more.track != nil {
		c.more.track = later.more.track
	}
}

func (t *track) count(amounts []placedAmount, claims int, sign quota.Amount) {
	t.userRun.add(amounts, claims, sign)
	t.groupRun.add(amounts, claims, sign)
}

// hold keeps the sum of what is held.
func (t *track) hold(r *resource, amount quota.Amount) {
	i := slices.IndexFunc(t.held, func(p placedAmount) bool { return p.resource == r })
	switch {
	case amount == 0:
	case i < 0:
		t.held = append(t.held, placedAmount{r, amount})
	case t.held[i].amount+amount == 0:
		t.held = slices.Delete(t.held, i, i+1)
	default:
		t.held[i].amount += amount
	}
}

// enter makes the runs that the track counts on.
func (t *track) enter() {
	acc := &t.home.tree.accounts
	t.userRun, t.groupRun = acc.run(quota.Holder{Kind: quota.AUser, Name: t.user}, t.home, t.application), nil
	if t.group != "" {
		t.groupRun = acc.run(quota.Holder{Kind: quota.AGroup, Name: t.group}, t.home, t.application)
	}
	if acc.tracks == nil {
		acc.tracks = map[trackKey]*track{}
	}
	acc.tracks[t.trackKey] = t
	acc.join(t, 1)
}

// leave forgets the track; its runs have ended with the last claim.
func (t *track) leave() {
	acc := &t.home.tree.accounts
	delete(acc.tracks, t.trackKey)
	acc.join(t, -1)
	t.userRun, t.groupRun = nil, nil
}

// join counts a track of an application in its group, or with -1 takes it off.
func (acc *accounts) join(t *track, tracks int) {
	if t.application == "" {
		return
	}
	key := memberKey{t.user, t.application}
	list := acc.members[key]
	i, known := slices.BinarySearchFunc(list, t.group, func(m membership, group string) int { return strings.Compare(m.group, group) })
	if !known {
		list = slices.Insert(list, i, membership{group: t.group})
	}
	if list[i].tracks += tracks; list[i].tracks == 0 {
		list = slices.Delete(list, i, i+1)
	}
	if acc.members == nil {
		acc.members = map[memberKey][]membership{}
	}
	if acc.members[key] = list; len(list) == 0 {
		delete(acc.members, key)
	}
}

// member answers the group that an application is counted in while it holds anything in the tree. If it is counted in
// several, because an ended allocation of another group holds again, it is the first by name.
func (acc *accounts) member(p quota.Principal) (string, bool) {
	if p.Application == "" {
		return "", false
	}
	if list := acc.members[memberKey{p.User, p.Application}]; len(list) > 0 {
		return list[0].group, true
	}
	return "", false
}

// Principals shows up to max users or groups of a tree after a name: whoever holds something or is named in a limit, in
// the order of their names; of one name only, if that is not empty. The common pot is the group [Wildcard]. NotFound names
// a tree that does not exist.
func (v View) Principals(treeName string, kind quota.HolderKind, name, after string, max int) (list []quota.PrincipalUsage, more bool, err *quota.Error) {
	t := v.ledger.forest.trees[treeName]
	switch {
	case t == nil:
		return nil, false, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(treeName))
	case kind != quota.AUser && kind != quota.AGroup:
		return nil, false, quota.Errorf(quota.Invalid, "kind", "ask for users or for groups")
	}
	wanted := func(n string) bool { return n > after && (name == "" || n == name) }
	nodes := t.whereLimited(kind, wanted)
	t.accounts.addTo(nodes, kind, wanted)
	names := slices.Sorted(maps.Keys(nodes))
	more = len(names) > max
	for _, n := range names[:min(len(names), max)] {
		list = append(list, t.principal(quota.Holder{Kind: kind, Name: n}, nodes[n]))
	}
	return list, more, nil
}

// whereLimited has for every wanted user or group that is named in a limit the nodes where it is. The user [Wildcard] is
// nobody.
func (t *tree) whereLimited(kind quota.HolderKind, wanted func(string) bool) map[string]map[*node]bool {
	nodes := map[string]map[*node]bool{}
	t.root.walk(func(n *node) bool {
		if n.rules == nil {
			return true
		}
		named := n.rules.users
		if kind == quota.AGroup {
			named = n.rules.groups
		}
		for name := range named { // into sets, in whatever order
			if wanted(name) && (kind == quota.AGroup || name != quota.Wildcard) {
				putAmount(nodes, name, n)
			}
		}
		return true
	})
	return nodes
}

// addTo adds the nodes where something is held.
func (acc *accounts) addTo(nodes map[string]map[*node]bool, kind quota.HolderKind, wanted func(string) bool) {
	holders := acc.users
	if kind == quota.AGroup {
		holders = acc.groups
	}
	for name, h := range holders { // into sets, in whatever order
		if !wanted(name) {
			continue
		}
		for n := range h.at {
			putAmount(nodes, name, n)
		}
	}
}

func putAmount(nodes map[string]map[*node]bool, name string, n *node) {
	if nodes[name] == nil {
		nodes[name] = map[*node]bool{}
	}
	nodes[name][n] = true
}

func (t *tree) principal(who quota.Holder, nodes map[*node]bool) quota.PrincipalUsage {
	h := t.accounts.find(who)
	u := quota.PrincipalUsage{Name: who.Name}
	if who.Kind == quota.AUser && h != nil {
		u.Groups = t.accounts.groupsOf(who.Name, h.at[t.root])
	}
	sorted := slices.SortedFunc(maps.Keys(nodes), func(a, b *node) int { return comparePaths(a.path, b.path) })
	for _, n := range sorted {
		u.Nodes = append(u.Nodes, n.principal(who, h))
	}
	return u
}

// groupsOf are the groups of a user's running applications; those without one are left out.
func (acc *accounts) groupsOf(user string, all *holding) []quota.Label {
	var list []quota.Label
	for _, application := range all.names() {
		if group, _ := acc.member(quota.Principal{User: user, Application: application}); group != "" {
			list = append(list, quota.Label{Key: application, Value: group})
		}
	}
	return list
}

// names are those of the running applications, sorted.
func (h *holding) names() []string {
	names := slices.Sorted(maps.Keys(h.runs))
	if len(names) > 0 && names[0] == "" {
		return names[1:]
	}
	return names
}

func (n *node) principal(who quota.Holder, h *holder) quota.PrincipalNode {
	p := quota.PrincipalNode{Path: n.path}
	if h != nil && h.at[n] != nil {
		at := h.at[n]
		p.Applications = at.names()
		for i, r := range n.tree.resources {
			if at.used[i] != 0 {
				p.Used = append(p.Used, quota.Component{Resource: r.Name, Amount: at.used[i]})
			}
		}
	}
	if rule := n.rules.of(who); rule != nil {
		p.Limits, p.MaxApplications = rule.Limits, rule.Applications
		p.Wildcard = who.Kind == quota.AUser && n.rules.users[who.Name] == nil
	}
	return p
}
