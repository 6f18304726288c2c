package ledger

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// Restorer builds a ledger from the parts of a snapshot: policies and trees, then revisions and items, then held, ended
// and waiting allocations, each in the order of the snapshot. After any error the restorer must not be used any more.
type Restorer struct {
	ledger *Ledger
	nodes  map[uint64]*node
	// formerNodes and formerResources stand for those of tombstones, which may not exist any more. Tombstones share them.
	formerNodes     map[address]*node
	formerResources map[string]*resource
	// waiting are the alternatives of the waiting requests, and blockers what blocks them.
	waiting  []*alternative
	blockers []blocker
}

// NewRestorer starts with the header of a snapshot.
func NewRestorer(b quota.Bounds, h Header) *Restorer {
	l := New(b)
	l.restoring = true
	l.now, l.history.revision, l.journal.lastEvent = h.Now, h.Revision, h.Event
	l.forest.nodeID, l.allocations.fence, l.allocations.lastArrivalSeq = h.NodeID, h.Fence, h.Seat
	l.inventory.lastStateSeq, l.queue.arrival, l.forest.version = h.Turn, h.Arrival, h.TreeVersion
	l.requests.last, l.webhooks.version = h.LimitRequest, h.Webhook
	l.calendar.last = h.Scheduled
	l.civil = civilClock{offset: h.CivilOffset, now: h.Civil}
	return &Restorer{
		ledger: l, nodes: map[uint64]*node{}, formerNodes: map[address]*node{},
		formerResources: map[string]*resource{},
	}
}

// AddPolicy adds one definition of a policy. It must be called before trees are added, in the order of names. The name
// may be that of a built-in policy that a later version introduced: the definition precedes it.
func (ld *Restorer) AddPolicy(spec quota.PolicySpec) error {
	f := &ld.ledger.forest
	if n := len(f.policies.specs); n > 0 && f.policies.specs[n-1].Name >= spec.Name || len(f.trees) > 0 {
		return fmt.Errorf("policy %q is not in order, or follows a tree", spec.Name)
	}
	p, problem := builtIn.Define(spec)
	if problem != nil {
		return errors.New(problem.Text)
	}
	f.policies.with(spec, p)
	f.bytes += policySpecSize(&spec)
	return nil
}

// AddTree adds one tree with all its nodes.
func (ld *Restorer) AddTree(image TreeImage) error {
	spec := quota.TreeSpec{
		Name: image.Name, TreeSettings: image.Settings, Resources: image.Resources,
		Nodes: make([]quota.NodeSpec, len(image.Nodes)),
	}
	for i, n := range image.Nodes {
		spec.Nodes[i] = *n.Spec
	}
	t, refused := ld.ledger.forest.draftTree(spec, "tree", ld.ledger.forest.policies)
	if refused != nil {
		return refused
	}
	for _, n := range spec.Nodes {
		// Not checked: the trees of a backup may name roles that the book of the running ledger does not have. Those give
		// nothing.
		t.byPath[n.Path].bindings = access.Compile(n.Bindings, ld.ledger.book.Roles(), access.NodeScope)
	}
	if ld.ledger.forest.trees[t.name] != nil {
		return fmt.Errorf("tree %s is there twice", t.name)
	}
	for _, n := range image.Nodes {
		at := t.byPath[n.Spec.Path]
		if n.ID == 0 || n.ID > ld.ledger.forest.nodeID || ld.nodes[n.ID] != nil {
			return fmt.Errorf("node identity %d of %s is not unique, or was never given", n.ID, at.place())
		}
		if n.RaisedByRule > ld.ledger.now.At {
			return fmt.Errorf("the limits of %s were raised at %d, in the future", at.place(), n.RaisedByRule)
		}
		if err := at.restoreCrossed(n.Crossed); err != nil {
			return err
		}
		at.id, at.dynamic, at.raisedByRule = n.ID, n.Made, n.RaisedByRule
		ld.nodes[n.ID] = at
		if err := ld.addHold(at, n.Hold); err != nil {
			return err
		}
	}
	if t.version = image.Version; t.version > ld.ledger.forest.version {
		return fmt.Errorf("tree %s has version %d, which was never given", t.name, t.version)
	}
	t.repool()
	if err := ld.addStock(t, image.ItemNumbers); err != nil {
		return err
	}
	ld.ledger.forest.trees[t.name] = t
	ld.ledger.forest.nodes += len(t.byPath)
	ld.ledger.forest.bytes += t.bytes()
	return nil
}

// restoreCrossed sets the crossed thresholds. Whether they agree with the use is checked at the end.
func (n *node) restoreCrossed(images []CrossedImage) error {
	for _, c := range images {
		r := n.tree.resource(c.Resource)
		if r == nil || len(c.Percents) == 0 || n.crossed[r] != nil {
			return fmt.Errorf("%s has crossed thresholds of %q twice, or none, or without having it", n.place(), c.Resource)
		}
		n.setCrossed(r, c.Percents)
	}
	return nil
}

// AddRevision adds one remembered revision.
func (ld *Restorer) AddRevision(r *quota.Revision) error {
	last := uint64(0)
	if known := ld.ledger.history.revisions; len(known) > 0 {
		last = known[len(known)-1].Number
	}
	if r.Number <= last || r.Number > ld.ledger.history.revision {
		return fmt.Errorf("revision %d follows %d in the history, but the configuration is at %d", r.Number, last,
			ld.ledger.history.revision)
	}
	ld.ledger.history.addRevision(r)
	return nil
}

// AddHeld adds one held allocation and charges it.
func (ld *Restorer) AddHeld(image AllocationImage) error {
	if len(image.Placed) != len(image.Request.Claims) {
		return fmt.Errorf("allocation %q has %d claims at %d nodes", image.Request.ID, len(image.Request.Claims),
			len(image.Placed))
	}
	a, err := ld.newAllocation(image, func(i int) *node { return ld.nodes[image.Placed[i]] })
	if err != nil {
		return err
	}
	l := ld.ledger
	if l.allocations.byID.Find(a.id) != nil {
		return fmt.Errorf("allocation %q is there twice", a.id)
	}
	if _, taken := l.allocations.held.Get(a.fence); taken || a.fence == 0 || a.fence > l.allocations.fence {
		return fmt.Errorf("I8: fence %d of allocation %q is not unique, or was never given", a.fence, a.id)
	}
	l.allocations.byID.Put(a)
	l.allocations.held.Set(a.fence, a)
	l.deadlines.add(a)
	l.queue.countRevocation(a, 1)
	if err := ld.claimItems(a); err != nil {
		return err
	}
	for i := range a.claims {
		if err := ld.checkArrivalSeq(a, i, image); err != nil {
			return err
		}
		a.claims[i].trackPrincipal(a.principal())
		l.allocations.chargeClaim(a, i)
	}
	return nil
}

// checkArrivalSeq restores the properties of a claim in a borrowing tree.
func (ld *Restorer) checkArrivalSeq(a *Allocation, i int, image AllocationImage) error {
	c := &a.claims[i]
	home, seat := nodeAt(image.Homes, i), nodeAt(image.Seats, i)
	if seat == 0 && c.at.borrows == policy.BorrowSoft {
		return fmt.Errorf("allocation %q has no seat at %s, which borrows softly", a.id, c.at.place())
	}
	if home == 0 && seat == 0 {
		return nil
	}
	if c.more == nil {
		c.more = &claimDetails{}
	}
	c.more.arrivalSeq = seat
	if home != 0 {
		c.more.home = ld.nodes[home]
		if c.more.home == nil || c.more.home.tree != c.at.tree {
			return fmt.Errorf("allocation %q belongs to a node that does not exist in tree %s", a.id, c.at.treeName)
		}
	}
	if seat > ld.ledger.allocations.lastArrivalSeq {
		return fmt.Errorf("allocation %q has seat %d, which was never given", a.id, seat)
	}
	return nil
}

// nodeAt returns one value of a list of rare properties, 0 if the list is nil.
func nodeAt[T any](list []T, i int) T {
	var none T
	if i < len(list) {
		return list[i]
	}
	return none
}

// AddEnded adds one tombstone.
func (ld *Restorer) AddEnded(image AllocationImage) error {
	if len(image.PlacedPaths) != len(image.Request.Claims) || image.Ended == nil {
		return fmt.Errorf("ended allocation %q has %d claims at %d paths, or no end", image.Request.ID,
			len(image.Request.Claims), len(image.PlacedPaths))
	}
	a, err := ld.newAllocation(image, func(i int) *node {
		return ld.formerNode(address{image.Request.Claims[i].Tree, image.PlacedPaths[i]})
	})
	if err != nil {
		return err
	}
	l := ld.ledger
	waited := image.State == quota.Cancelled || image.State == quota.TimedOut || image.State == quota.Abandoned
	if a.fence == 0 && !waited || a.fence > l.allocations.fence || image.Ended.At < a.granted.At {
		return fmt.Errorf(
			"I8: ended allocation %q has fence %d, which was never given, or ended before it was granted", a.id,
			a.fence)
	}
	state := image.State
	if state == quota.Held {
		state = quota.Released // snapshots leave it out
	}
	a.ended = &ending{Stamp: *image.Ended, state: state, by: image.By, reason: image.EndReason}
	younger := l.allocations.byID.Find(a.id)
	l.allocations.keepTombstone(a)
	if younger != nil && younger.ended == nil {
		l.allocations.byID.Put(younger) // the id was used again after the tombstone's span
	}
	return nil
}

// formerNode returns the node of a tombstone.
func (ld *Restorer) formerNode(at address) *node {
	n := ld.formerNodes[at]
	if n == nil {
		n = &node{address: &at}
		ld.formerNodes[at] = n
	}
	return n
}

// AddEvent adds one remembered event.
func (ld *Restorer) AddEvent(e *quota.Event) error {
	last := uint64(0)
	if known := ld.ledger.journal.events; len(known) > 0 {
		last = known[len(known)-1].Number
	}
	if e.Number <= last || e.Number > ld.ledger.journal.lastEvent {
		return fmt.Errorf("event %d follows %d, but the last is %d", e.Number, last, ld.ledger.journal.lastEvent)
	}
	ld.ledger.journal.addEvent(e)
	return nil
}

// newAllocation rebuilds a record; at returns the node of each claim.
func (ld *Restorer) newAllocation(image AllocationImage, at func(i int) *node) (*Allocation, error) {
	if err := checkID(image.Request.ID); err != nil {
		return nil, err
	}
	if err := image.Undo.check(ld.ledger, image.Request.ID); err != nil {
		return nil, err
	}
	if n := len(image.Request.AnyOf); n > quota.MaxAlternatives || image.Alternative < min(1, n) || image.Alternative > n {
		return nil, fmt.Errorf("allocation %q has alternative %d of %d", image.Request.ID, image.Alternative, n)
	}
	a := ld.ledger.allocations.shared.begin(&image.Request)
	a.fence, a.granted, a.owner, a.more = image.Fence, image.Granted, image.Owner, image.toDetails()
	for i, c := range image.Request.Claims {
		n := at(i)
		if n == nil || n.treeName != c.Tree {
			return nil, fmt.Errorf("allocation %q is placed at a node that does not exist in tree %s", a.id, c.Tree)
		}
		if err := ld.restoreClaim(&a.claims[i], c, n); err != nil {
			return nil, fmt.Errorf("allocation %q: %w", a.id, err)
		}
		if err := a.claims[i].restoreItems(image, i); err != nil {
			return nil, fmt.Errorf("allocation %q: %w", a.id, err)
		}
		if i < len(image.Groups) && image.Groups[i] != "" {
			if image.Request.Principal.User == "" {
				return nil, fmt.Errorf("allocation %q is counted in group %s, but has no user", a.id, image.Groups[i])
			}
			a.claims[i].ensureDetails().group = image.Groups[i]
		}
	}
	// What is charged next may give a claim an arrival number or a home.
	return ld.ledger.allocations.shared.keep(len(image.Seats)+len(image.Homes) == 0), nil
}

func (image *AllocationImage) toDetails() *details {
	r, b := image.Request, image.toLease()
	if r.Mode == quota.Hold && r.Principal.User == "" && r.Priority == 0 && !image.Forced && image.Until == 0 &&
		len(image.Preempted)+len(image.Displaced) == 0 && image.Undo == nil && b == nil && !image.isResized() &&
		r.For == 0 && image.DeclaredEnd == 0 {
		return nil
	}
	m := &details{
		principal: r.Principal, mode: r.Mode, reserveFor: r.ReserveFor, until: image.Until, forced: image.Forced,
		preempted: image.Preempted, room: image.MadeRoom, lease: b,
		waitFor: r.WaitFor, keep: r.Keep, priority: r.Priority, declared: r.For,
		endsAt: image.DeclaredEnd, undo: image.Undo.record(),
	}
	if image.isResized() {
		m.resized = &resized{
			generation: image.Generation, first: image.First, splitFrom: image.SplitFrom,
			anyOf: r.AnyOf, given: image.Alternative,
			dropped: image.Dropped, change: image.Change,
		}
	}
	for _, d := range image.Displaced {
		m.displaced = append(
			m.displaced, displacement{
				id: d.ID, claim: d.Claim, from: d.From, home: d.Home, fromSeq: d.FromSeat,
				newSeq: d.Seat,
			})
	}
	return m
}

// isResized is true if the allocation may hold other amounts than its request asked for.
func (image *AllocationImage) isResized() bool {
	return image.Generation != 0 || image.First != nil || image.SplitFrom != "" || image.Request.AnyOf != nil ||
		image.Dropped != 0 || image.Change != 0
}

// toLease returns nil if the allocation is not a lease, has no user data, and does not wait for its caller to claim it.
func (image *AllocationImage) toLease() *lease {
	r := image.Request
	if image.TTL == 0 && image.Expires == 0 && len(r.Data)+len(image.Data) == 0 {
		return nil
	}
	return &lease{
		asked: r.TTL, ttl: image.TTL, expires: image.Expires, revokedBy: image.RevokedBy, reason: image.RevokeReason,
		unclaimed: image.Unclaimed, askedData: r.Data, data: image.Data,
	}
}

// restoreClaim rebuilds a claim at a node.
func (ld *Restorer) restoreClaim(c *placedClaim, claim quota.Claim, n *node) error {
	c.at, c.placed, c.asked = n, n.address, n.address
	if n.path != claim.Node {
		c.asked = &address{n.treeName, claim.Node}
	}
	if claim.Standing != (quota.Standing{}) {
		c.more = &claimDetails{Standing: claim.Standing}
	}
	for j, component := range claim.Amounts {
		r, err := n.restoreResource(component)
		if err != nil {
			return err
		}
		if n.tree == nil {
			r = ld.formerResource(r)
		}
		c.amounts[j] = placedAmount{resource: r, amount: component.Amount}
	}
	c.amounts = c.amounts[:len(claim.Amounts)]
	return nil
}

// formerResource returns the one that tombstones share for a resource of which they only know the name.
func (ld *Restorer) formerResource(r *resource) *resource {
	known := ld.formerResources[r.Name]
	if known == nil {
		known = r
		ld.formerResources[r.Name] = r
	}
	return known
}

// restoreResource finds the resource of a claim. The node of a tombstone has no tree and accepts any name.
func (n *node) restoreResource(c quota.Component) (*resource, error) {
	if c.Amount < 0 || c.Amount > quota.MaxAmount {
		return nil, fmt.Errorf("it holds %d %s", c.Amount, c.Resource)
	}
	if n.tree == nil {
		return &resource{Resource: quota.Resource{Name: c.Resource}}, nil
	}
	if r := n.tree.resource(c.Resource); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("tree %s has no resource %s", n.treeName, c.Resource)
}

// Finish verifies every invariant and returns the ledger.
func (ld *Restorer) Finish() (*Ledger, error) {
	if ld.ledger == nil {
		return nil, errors.New("this loader is finished")
	}
	if err := ld.requeueAll(); err != nil {
		return nil, err
	}
	l := ld.ledger
	planner{l}.reserveIDs()
	l.forest.forgetUses()
	ld.ledger, l.restoring = nil, false
	if err := l.Check(); err != nil {
		return nil, err
	}
	return l, nil
}
