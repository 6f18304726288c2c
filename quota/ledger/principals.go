package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// accounts are the usage of users and groups in a tree. They are derived from the held claims and have no entry for a
// principal that holds nothing. The limits are in the rules of the nodes.
type accounts struct {
	users, groups map[string]*holder
	tracks        map[trackKey]*track
	// members has, by application, the groups that it counts for, by name: nearly always one.
	members map[memberKey][]membership
}

// holder is a user or a group that holds something in a tree.
type holder struct {
	quota.Holder
	at map[*node]*holding
}

// holding is the usage of a holder in the subtree of a node.
type holding struct {
	of     *holder
	node   *node
	up     *holding       // at the node's parent
	used   []quota.Amount // by resource index
	claims int
	runs   map[string]*run // by application; the empty name has the claims without application
	// applications is the number of running applications.
	applications int
	// lookedUp are the rules in which rule was found for this holder.
	lookedUp *rules
	rule     *rule
}

// run is the claims of one application in a holding.
type run struct {
	in          *holding
	up          *run // the same application one level higher
	application string
	claims      int
}

// find returns the holder, nil if it holds nothing in the tree.
func (acc *accounts) find(who quota.Holder) *holder {
	if who.Kind == quota.AGroup {
		return acc.groups[who.Name]
	}
	return acc.users[who.Name]
}

// run returns the run of an application at a node, and creates it on every level up to the root if it is new.
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
			break // then it exists above too
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

// run returns or creates a run at one node.
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

// add counts claims and their amounts on every level; a sign of -1 refunds them. Empty runs are removed.
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

// end removes a run, and with the last one the holding.
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

// countApplication counts a run that begins or ends; at the node, the same application of two users counts twice.
func (h *holding) countApplication(r *run, n int) {
	if r.application == "" {
		return
	}
	h.applications += n
	if h.of.Kind == quota.AUser {
		h.node.applications += n
	}
}

// recount rebuilds the accounts along the present paths of their nodes, after nodes or resources have moved. Its cost
// depends on the number of tracks, not of claims.
func (t *tree) recount() {
	tracks := t.accounts.tracks
	t.accounts = accounts{}
	t.root.walk(func(n *node) bool {
		n.applications = 0
		return true
	})
	for _, tr := range tracks { // a sum does not depend on the order
		tr.enter()
		tr.count(tr.held, tr.claims, 1)
	}
}

// track caches the runs for claims of one principal with one home.
type track struct {
	trackKey
	claims int
	held   []placedAmount // sum of the claims, without zeros, unordered
	// userRun and groupRun are the runs at the home while claims are counted; groupRun is nil if no group is counted.
	userRun, groupRun *run
}

type trackKey struct {
	user, application, group string
	home                     *node
}

// memberKey is an application of a user. The same name under two users is two applications.
type memberKey struct{ user, application string }

// membership is a group with the tracks of one application that count for it.
type membership struct {
	group  string // empty for none
	tracks int
}

// track returns a track, and creates it if necessary.
func (acc *accounts) track(key trackKey) *track {
	if t := acc.tracks[key]; t != nil {
		return t
	}
	return &track{trackKey: key}
}

// trackPrincipal binds a claim to the track of its principal and group.
func (c *placedClaim) trackPrincipal(p quota.Principal) {
	if p.User != "" {
		home := c.home()
		c.ensureDetails().track = home.tree.accounts.track(trackKey{p.User, p.Application, c.group(), home})
	}
}

// ensureDetails returns the details, and creates them if necessary.
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

// add counts a claim; a sign of -1 refunds it. An empty track may have been replaced by a successor, and the claim may
// have another home; the claim is then counted there.
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

// sameTrack binds the claim to the track of another record of it, which may have been refunded and charged since; the
// claim's own track is then stale.
func (c *placedClaim) sameTrack(later *placedClaim) {
	if later.more.track != nil {
		c.more.track = later.more.track
	}
}

func (t *track) count(amounts []placedAmount, claims int, sign quota.Amount) {
	t.userRun.add(amounts, claims, sign)
	t.groupRun.add(amounts, claims, sign)
}

// hold updates the sum of amounts.
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

// enter creates the runs that the track counts on.
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

// leave removes the track; its runs have ended with the last claim.
func (t *track) leave() {
	acc := &t.home.tree.accounts
	delete(acc.tracks, t.trackKey)
	acc.join(t, -1)
	t.userRun, t.groupRun = nil, nil
}

// join counts a track of an application for its group; with -1 it removes the track.
func (acc *accounts) join(t *track, tracks int) {
	if t.application == "" {
		return
	}
	key := memberKey{t.user, t.application}
	list := acc.members[key]
	i, known := slices.BinarySearchFunc(list, t.group,
		func(m membership, group string) int { return strings.Compare(m.group, group) })
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

// member returns the group that an application counts for while it holds anything in the tree. If it counts for
// several, because an ended allocation of another group was restored, it is the first by name.
func (acc *accounts) member(p quota.Principal) (string, bool) {
	if p.Application == "" {
		return "", false
	}
	if list := acc.members[memberKey{p.User, p.Application}]; len(list) > 0 {
		return list[0].group, true
	}
	return "", false
}

// rules are the principal limits of one node, indexed by name. They are rebuilt with every configuration, so that usage
// and configuration never depend on each other.
type rules struct {
	users, groups map[string]*rule
	anyUser       *rule
}

// rule is what one entry says.
type rule struct {
	*quota.PrincipalLimit
	most  []quota.Amount // by resource index; MaxAmount if not limited
	order int            // in which the names of groups are looked for
}

// user is the rule for a user: the named one replaces the wildcard's as a whole. Nil if there is none.
func (r *rules) user(name string) *rule {
	if r == nil {
		return nil
	}
	if named := r.users[name]; named != nil {
		return named
	}
	return r.anyUser
}

// group is the rule for a group or for the shared limit. Nil if there is none.
func (r *rules) group(name string) *rule {
	if r == nil {
		return nil
	}
	return r.groups[name]
}

// of is the rule for a holder.
func (r *rules) of(who quota.Holder) *rule {
	if who.Kind == quota.AGroup {
		return r.group(who.Name)
	}
	return r.user(who.Name)
}

// ruleAt returns the rule for a holder, and caches it with the holding for each configuration of the node.
func (h *holding) ruleAt(n *node, by quota.Holder) *rule {
	if h == nil {
		return n.rules.of(by)
	}
	if h.lookedUp != n.rules {
		h.lookedUp, h.rule = n.rules, n.rules.of(by)
	}
	return h.rule
}

func (h *holding) uses(r int) quota.Amount {
	if h == nil {
		return 0
	}
	return h.used[r]
}

func (h *holding) running() quota.Amount {
	if h == nil {
		return 0
	}
	return quota.Amount(h.applications)
}
