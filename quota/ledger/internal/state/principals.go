package state

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Accounts are the usage of users and groups in a tree. They are derived from the held claims and have no entry for a
// principal that holds nothing. The limits are in the rules of the nodes.
type Accounts struct {
	Users, Groups map[string]*Holder
	Tracks        map[TrackKey]*Track
	// members has, by application, the groups that it counts for, by name: nearly always one.
	members map[MemberKey][]membership
}

// Holder is a user or a group that holds something in a tree.
type Holder struct {
	quota.Holder
	At map[*Node]*Holding
}

// Holding is the usage of a holder in the subtree of a node.
type Holding struct {
	holder *Holder
	Node   *Node
	Up     *Holding       // at the node's parent
	Used   []quota.Amount // by resource index
	Claims int
	Runs   map[string]*Run // by application; the empty name has the claims without application
	// Applications is the number of running applications.
	Applications int
	// lookedUp are the rules in which rule was found for this holder.
	lookedUp *Rules
	rule     *Rule
}

// Run is the claims of one application in a holding.
type Run struct {
	in          *Holding
	up          *Run // the same application one level higher
	application string
	Claims      int
}

// Find returns the holder, nil if it holds nothing in the tree.
func (acc *Accounts) Find(holder quota.Holder) *Holder {
	if holder.Kind == quota.AGroup {
		return acc.Groups[holder.Name]
	}
	return acc.Users[holder.Name]
}

// run returns the run, and creates it on every level up to the root if it is new.
func (acc *Accounts) run(holder quota.Holder, home *Node, application string) *Run {
	h := acc.Find(holder)
	if h == nil {
		h = &Holder{Holder: holder, At: map[*Node]*Holding{}}
		acc.enter(h)
	}
	var first, last *Run
	for n := home; n != nil; n = n.Parent {
		r, began := h.run(n, application)
		if first == nil {
			first = r
		}
		if last != nil {
			last.up, last.in.Up = r, r.in
		}
		if last = r; !began {
			break // then it exists above too
		}
	}
	return first
}

func (acc *Accounts) enter(h *Holder) {
	list := &acc.Users
	if h.Kind == quota.AGroup {
		list = &acc.Groups
	}
	if *list == nil {
		*list = map[string]*Holder{}
	}
	(*list)[h.Name] = h
}

func (acc *Accounts) leave(h *Holder) {
	if h.Kind == quota.AGroup {
		delete(acc.Groups, h.Name)
	} else {
		delete(acc.Users, h.Name)
	}
}

func (h *Holder) run(n *Node, application string) (r *Run, began bool) {
	at := h.At[n]
	if at == nil {
		at = &Holding{holder: h, Node: n, Used: make([]quota.Amount, len(n.Tree.Resources)), Runs: map[string]*Run{}}
		h.At[n] = at
	}
	if r = at.Runs[application]; r != nil {
		return r, false
	}
	r = &Run{in: at, application: application}
	at.Runs[application] = r
	at.countApplication(r, 1)
	return r, true
}

// add refunds with a sign of -1. Empty runs are removed.
func (r *Run) add(amounts []PlacedAmount, claims int, sign quota.Amount) {
	for ; r != nil; r = r.up {
		r.Claims += claims * int(sign)
		h := r.in
		h.Claims += claims * int(sign)
		for _, p := range amounts {
			h.Used[p.Resource.Index] += sign * p.Amount
		}
		if r.Claims == 0 {
			h.end(r)
		}
	}
}

func (h *Holding) end(r *Run) {
	delete(h.Runs, r.application)
	h.countApplication(r, -1)
	if len(h.Runs) > 0 {
		return
	}
	delete(h.holder.At, h.Node)
	if len(h.holder.At) == 0 {
		h.Node.Tree.Accounts.leave(h.holder)
	}
}

// countApplication counts a run that begins or ends. At the node, the same application of two users counts twice.
func (h *Holding) countApplication(r *Run, n int) {
	if r.application == "" {
		return
	}
	h.Applications += n
	if h.holder.Kind == quota.AUser {
		h.Node.Applications += n
	}
}

// Recount rebuilds the accounts along the present paths of their nodes, after nodes or resources have moved. Its cost
// depends on the number of tracks, not of claims.
func (t *Tree) Recount() {
	tracks := t.Accounts.Tracks
	t.Accounts = Accounts{}
	t.Root.Walk(func(n *Node) bool {
		n.Applications = 0
		return true
	})
	for _, tr := range tracks { // a sum does not depend on the order
		tr.Enter()
		tr.Count(tr.Held, tr.Claims, 1)
	}
}

// Track caches the runs for claims of one principal with one home.
type Track struct {
	TrackKey
	Claims int
	Held   []PlacedAmount // sum of the claims, without zeros, unordered
	// userRun and groupRun are the runs at the home while claims are counted; groupRun is nil if no group is counted.
	userRun, groupRun *Run
}

type TrackKey struct {
	User, Application, Group string
	Home                     *Node
}

// MemberKey is an application of a user. The same name under two users is two applications.
type MemberKey struct{ User, Application string }

// membership is a group with the tracks of one application that count for it.
type membership struct {
	group  string // empty for none
	tracks int
}

func (acc *Accounts) track(key TrackKey) *Track {
	if t := acc.Tracks[key]; t != nil {
		return t
	}
	return &Track{TrackKey: key}
}

// TrackPrincipal binds a claim to the track of its principal and group.
func (c *PlacedClaim) TrackPrincipal(p quota.Principal) {
	if p.User != "" {
		home := c.Home()
		c.EnsureDetails().Track = home.Tree.Accounts.track(TrackKey{p.User, p.Application, c.Group(), home})
	}
}

// EnsureDetails returns the details, and creates them if necessary.
func (c *PlacedClaim) EnsureDetails() *ClaimDetails {
	if c.More == nil {
		c.More = &ClaimDetails{}
	}
	return c.More
}

func (c *PlacedClaim) Group() string {
	if c.More == nil {
		return ""
	}
	return c.More.Group
}

// Add counts a claim; a sign of -1 refunds it. An empty track may have been replaced by a successor, and the claim may
// have another home; the claim is then counted there.
func (t *Track) Add(c *PlacedClaim, sign quota.Amount) {
	if home := c.Home(); t.Claims == 0 || t.Home != home {
		key := t.TrackKey
		key.Home = home
		t = home.Tree.Accounts.track(key)
		c.More.Track = t
	}
	if t.Claims == 0 {
		t.Enter()
	}
	t.Claims += int(sign)
	for _, p := range c.Amounts {
		t.hold(p.Resource, sign*p.Amount)
	}
	t.Count(c.Amounts, 1, sign)
	if t.Claims == 0 {
		t.leave()
	}
}

// SameTrack binds the claim to the track of another record of it, which may have been refunded and charged since; the
// claim's own track is then stale.
func (c *PlacedClaim) SameTrack(later *PlacedClaim) {
	if later.More.Track != nil {
		c.More.Track = later.More.Track
	}
}

func (t *Track) Count(amounts []PlacedAmount, claims int, sign quota.Amount) {
	t.userRun.add(amounts, claims, sign)
	t.groupRun.add(amounts, claims, sign)
}

func (t *Track) hold(r *Resource, amount quota.Amount) {
	i := slices.IndexFunc(t.Held, func(p PlacedAmount) bool { return p.Resource == r })
	switch {
	case amount == 0:
	case i < 0:
		t.Held = append(t.Held, PlacedAmount{r, amount})
	case t.Held[i].Amount+amount == 0:
		t.Held = slices.Delete(t.Held, i, i+1)
	default:
		t.Held[i].Amount += amount
	}
}

// Enter creates the runs that the track counts on.
func (t *Track) Enter() {
	acc := &t.Home.Tree.Accounts
	t.userRun, t.groupRun = acc.run(quota.Holder{Kind: quota.AUser, Name: t.User}, t.Home, t.Application), nil
	if t.Group != "" {
		t.groupRun = acc.run(quota.Holder{Kind: quota.AGroup, Name: t.Group}, t.Home, t.Application)
	}
	if acc.Tracks == nil {
		acc.Tracks = map[TrackKey]*Track{}
	}
	acc.Tracks[t.TrackKey] = t
	acc.join(t, 1)
}

// leave removes the track; its runs have ended with the last claim.
func (t *Track) leave() {
	acc := &t.Home.Tree.Accounts
	delete(acc.Tracks, t.TrackKey)
	acc.join(t, -1)
	t.userRun, t.groupRun = nil, nil
}

// join counts a track of an application for its group; with -1 it removes the track.
func (acc *Accounts) join(t *Track, tracks int) {
	if t.Application == "" {
		return
	}
	key := MemberKey{t.User, t.Application}
	list := acc.members[key]
	i, known := slices.BinarySearchFunc(list, t.Group,
		func(m membership, group string) int { return strings.Compare(m.group, group) })
	if !known {
		list = slices.Insert(list, i, membership{group: t.Group})
	}
	if list[i].tracks += tracks; list[i].tracks == 0 {
		list = slices.Delete(list, i, i+1)
	}
	if acc.members == nil {
		acc.members = map[MemberKey][]membership{}
	}
	if acc.members[key] = list; len(list) == 0 {
		delete(acc.members, key)
	}
}

// Member returns the group that an application counts for while it holds anything in the tree. If it counts for
// several, because an ended allocation of another group was restored, it is the first by name.
func (acc *Accounts) Member(p quota.Principal) (string, bool) {
	if p.Application == "" {
		return "", false
	}
	if list := acc.members[MemberKey{p.User, p.Application}]; len(list) > 0 {
		return list[0].group, true
	}
	return "", false
}

// Rules are the principal limits of one node, indexed by name. They are rebuilt with every configuration, so that usage
// and configuration never depend on each other.
type Rules struct {
	Users, Groups map[string]*Rule
	AnyUser       *Rule
}

// Rule is what one entry says.
type Rule struct {
	*quota.PrincipalLimit
	Most  []quota.Amount // by resource index; MaxAmount if not limited
	Order int            // in which the names of groups are looked for
}

// user is the rule for a user: the named one replaces the wildcard's as a whole. Nil if there is none.
func (r *Rules) user(name string) *Rule {
	if r == nil {
		return nil
	}
	if named := r.Users[name]; named != nil {
		return named
	}
	return r.AnyUser
}

// group is nil if there is no rule. The shared limit is a group too.
func (r *Rules) group(name string) *Rule {
	if r == nil {
		return nil
	}
	return r.Groups[name]
}

// Of is the rule for a holder.
func (r *Rules) Of(holder quota.Holder) *Rule {
	if holder.Kind == quota.AGroup {
		return r.group(holder.Name)
	}
	return r.user(holder.Name)
}

// RuleAt returns the rule for a holder, and caches it with the holding for each configuration of the node.
func (h *Holding) RuleAt(n *Node, holder quota.Holder) *Rule {
	if h == nil {
		return n.Rules.Of(holder)
	}
	if h.lookedUp != n.Rules {
		h.lookedUp, h.rule = n.Rules, n.Rules.Of(holder)
	}
	return h.rule
}

func (h *Holding) Uses(r int) quota.Amount {
	if h == nil {
		return 0
	}
	return h.Used[r]
}

func (h *Holding) Running() quota.Amount {
	if h == nil {
		return 0
	}
	return quota.Amount(h.Applications)
}

// Has reports whether an application runs.
func (h *Holding) Has(application string) bool { return h != nil && h.Runs[application] != nil }

// Names are the names of the running applications, sorted.
func (h *Holding) Names() []string {
	names := slices.Sorted(maps.Keys(h.Runs))
	if len(names) > 0 && names[0] == "" {
		return names[1:]
	}
	return names
}
