package ledger

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// Restorer builds a ledger from the parts of a snapshot: trees, then revisions and items, then held, ended and waiting
// allocations, each in the order of the snapshot. After any error the restorer must not be used any further.
type Restorer struct {
	ledger *Ledger
	nodes  map[uint64]*node
	// formerNodes and formerResources stand for those of tombstones, which may not exist any more. Tombstones share them.
	formerNodes     map[address]*node
	formerResources map[string]*resource
	// waiters are the waiting requests, and keys their blockers.
	waiters  []*waiter
	blockers []blocker
}

// NewRestorer starts with the header of a snapshot.
func NewRestorer(b quota.Bounds, h Header) *Restorer {
	l := New(b)
	l.restoring = true
	l.now, l.history.revision, l.journal.lastEvent = h.Now, h.Revision, h.Event
	l.forest.nodeID, l.allocations.fence, l.allocations.lastArrivalSeq = h.NodeID, h.Fence, h.Seat
	l.inventory.lastStateSeq, l.queue.arrival, l.forest.version = h.Turn, h.Arrival, h.TreeVersion
	return &Restorer{
		ledger: l, nodes: map[uint64]*node{}, formerNodes: map[address]*node{},
		formerResources: map[string]*resource{},
	}
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
	t, refused := ld.ledger.forest.draftTree(spec, "tree")
	if refused != nil {
		return refused
	}
	if ld.ledger.forest.trees[t.name] != nil {
		return fmt.Errorf("tree %s is there twice", t.name)
	}
	for _, n := range image.Nodes {
		at := t.byPath[n.Spec.Path]
		if n.ID == 0 || n.ID > ld.ledger.forest.nodeID || ld.nodes[n.ID] != nil {
			return fmt.Errorf("node identity %d of %s is not unique, or was never given", n.ID, at.place())
		}
		at.id, at.dynamic = n.ID, n.Made
		ld.nodes[n.ID] = at
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
		state = quota.Released // the first format knew no other end
	}
	a.ended = &ending{Stamp: *image.Ended, state: state, by: image.By}
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
	a := ld.ledger.allocations.shared.begin(&image.Request)
	a.fence, a.granted, a.more = image.Fence, image.Granted, image.toDetails()
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
		len(image.Preempted)+len(image.Displaced) == 0 && image.Undo == nil && b == nil {
		return nil
	}
	m := &details{
		principal: r.Principal, mode: r.Mode, reserveFor: r.ReserveFor, until: image.Until, forced: image.Forced,
		preempted: image.Preempted, lease: b,
		waitFor: r.WaitFor, keep: r.Keep, priority: r.Priority, undo: image.Undo.record(),
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

// toLease returns nil if the allocation is not a lease and has no user data.
func (image *AllocationImage) toLease() *lease {
	r := image.Request
	if image.TTL == 0 && len(r.Data)+len(image.Data) == 0 {
		return nil
	}
	return &lease{
		asked: r.TTL, ttl: image.TTL, expires: image.Expires, revokedBy: image.RevokedBy, unclaimed: image.Unclaimed,
		askedData: r.Data, data: image.Data,
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
	ld.ledger, l.restoring = nil, false
	if err := l.Check(); err != nil {
		return nil, err
	}
	return l, nil
}

// Items yields the items in the order of their turns.
func (i *Snapshot) Items() iter.Seq[ItemImage] {
	return func(yield func(ItemImage) bool) {
		for _, it := range i.items.All() {
			owner, _ := i.held.Get(it.owner)
			if !yield(it.image(owner)) {
				return
			}
		}
	}
}

func (it *item) image(owner *Allocation) ItemImage {
	return ItemImage{
		ItemName: quota.ItemName{Tree: it.stock.tree, Resource: it.stock.resource.Name, Name: it.name}, State: it.state,
		Turn: it.stateSeq, Updated: it.touched(owner),
		Since: it.since, Expires: it.expires, Data: it.data, Leaving: it.leaving,
	}
}

// touched is when an item last changed, or when its owner, which may be nil, last renewed.
func (it *item) touched(owner *Allocation) quota.Stamp {
	if owner != nil && owner.lease().touched.At > it.updated.At {
		return owner.lease().touched
	}
	return it.updated
}

// itemNumbers are the last numbers assigned to items on demand, by resource; nil if all are 0.
func (t *tree) itemNumbers() []uint64 {
	var numbers []uint64
	for i, r := range t.resources {
		if r.stock != nil && r.stock.number != 0 {
			numbers = atIndex(numbers, len(t.resources), i, r.stock.number)
		}
	}
	return numbers
}

// addStock prepares the resources of a tree for their items.
func (ld *Restorer) addStock(t *tree, numbers []uint64) error {
	if len(numbers) > 0 && len(numbers) != len(t.resources) {
		return fmt.Errorf("tree %s has %d resources, but numbers of items for %d", t.name,
			len(t.resources), len(numbers))
	}
	for i, r := range t.resources {
		if r.Unit == quota.Items {
			r.stock = newStock(t.name, r)
			r.stock.number = nodeAt(numbers, i)
		}
	}
	return nil
}

// AddItem adds one item. It must be called after all trees and before held allocations.
func (ld *Restorer) AddItem(image ItemImage) error {
	s, err := ld.stockOf(image.Tree, image.Resource)
	if err != nil {
		return err
	}
	l := ld.ledger
	switch _, taken := l.inventory.items.Get(image.Turn); {
	case !quota.IsItemName(image.Name) || s.byName[image.Name] != nil:
		return fmt.Errorf("item %q of resource %s of tree %s is there twice, or has no good name", image.Name,
			image.Resource, image.Tree)
	case taken || image.Turn == 0 || image.Turn > l.inventory.lastStateSeq:
		return fmt.Errorf("turn %d of item %s is not unique, or was never given", image.Turn, image.Name)
	case image.State == "" || len(image.State) > quota.MaxItemState:
		return fmt.Errorf("item %s is in state %q, which cannot be", image.Name, image.State)
	}
	if refused := l.checkData(image.Data, "user_data"); refused != nil {
		return refused
	}
	l.inventory.changeItem(nil, &item{
		stock: s, name: image.Name, state: image.State, stateSeq: image.Turn, updated: image.Updated,
		since:   image.Since,
		expires: image.Expires, data: image.Data, leaving: image.Leaving,
	})
	return nil
}

func (ld *Restorer) stockOf(tree, resource string) (*stock, error) {
	if t := ld.ledger.forest.trees[tree]; t != nil {
		if r := t.resource(resource); r != nil && r.stock != nil {
			return r.stock, nil
		}
	}
	return nil, fmt.Errorf("tree %s has no resource %s of items", tree, resource)
}

// restoreItems restores the picks and items of a claim, which count like amounts. The items of an ended allocation are
// names only.
func (c *placedClaim) restoreItems(image AllocationImage, i int) error {
	picks := image.Request.Claims[i].Picks
	if len(picks) == 0 {
		return nil
	}
	c.setItems(picks, nil)
	for _, h := range image.Items {
		if h.Claim != i {
			continue
		}
		held := heldItem{resource: h.Resource, name: h.Name}
		if n := len(c.heldItems()); n > 0 && compareHeld(c.heldItems()[n-1], held) >= 0 ||
			c.pickOf(h.Resource).Resource == "" {
			return fmt.Errorf("item %s is out of order, held twice, or was not asked for", h.Name)
		}
		c.more.items.held = append(c.more.items.held, held)
	}
	for _, p := range picks {
		r, err := c.at.restoreResource(quota.Component{Resource: p.Resource})
		if err != nil {
			return err
		}
		if c.at.tree == nil {
			r.Unit = quota.Items
		}
		n := c.countOf(p.Resource)
		if image.State == quota.Waiting {
			n = quota.Amount(p.Count)
		}
		if n > 0 {
			c.amounts = append(c.amounts, placedAmount{r, n})
		}
	}
	slices.SortStableFunc(c.amounts, func(a, b placedAmount) int { return a.resource.index - b.resource.index })
	return nil
}

// countOf is the number of items of a resource that the claim holds.
func (c *placedClaim) countOf(resource string) quota.Amount {
	n := quota.Amount(0)
	for _, h := range c.heldItems() {
		if h.resource == resource {
			n++
		}
	}
	return n
}

// claimItems makes a restored allocation the owner of its items.
func (ld *Restorer) claimItems(a *Allocation) error {
	for i := range a.claims {
		c := &a.claims[i]
		for j, h := range c.heldItems() {
			s, err := ld.stockOf(c.at.treeName, h.resource)
			if err != nil {
				return err
			}
			it := s.byName[h.name]
			if it == nil || it.owner != 0 {
				return fmt.Errorf(
					"I5: allocation %q holds item %s, which does not exist, or has another owner", a.id, h.name)
			}
			is := *it
			is.owner = a.fence
			ld.ledger.inventory.changeItem(it, &is)
			c.more.items.held[j].is = &is
		}
	}
	return nil
}
