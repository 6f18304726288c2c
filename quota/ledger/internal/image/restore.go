package image

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// Restorer builds a state from the parts of a snapshot: policies and trees, then revisions and items, then held, ended
// and waiting allocations, each in the order of the snapshot. After any error the restorer must not be used any more.
type Restorer struct {
	state *state.State
	nodes map[uint64]*state.Node
	// formerNodes and formerResources stand for those of tombstones, which may not exist any more. Tombstones share them.
	formerNodes     map[state.Address]*state.Node
	formerResources map[string]*state.Resource
	// waiting are the alternatives of the waiting requests, and blockers what blocks them.
	waiting  []*state.Alternative
	blockers []state.Blocker
}

// NewRestorer starts with the header of a snapshot.
func NewRestorer(b quota.Bounds, h Header) *Restorer {
	s := state.NewState(b)
	s.Restoring = true
	s.Now, s.History.Revision, s.Journal.LastEvent = h.Now, h.Revision, h.Event
	s.Forest.NodeID, s.Allocations.Fence, s.Allocations.LastArrivalSeq = h.NodeID, h.Fence, h.ArrivalSeq
	s.Inventory.LastStateSeq, s.Queue.Arrival, s.Forest.Version = h.StateSeq, h.Arrival, h.TreeVersion
	s.Requests.Last, s.Webhooks.Version = h.LimitRequest, h.Webhook
	s.Calendar.Last = h.Scheduled
	s.Civil = state.CivilClock{Offset: h.CivilOffset, Now: h.Civil}
	return &Restorer{
		state: s, nodes: map[uint64]*state.Node{}, formerNodes: map[state.Address]*state.Node{},
		formerResources: map[string]*state.Resource{},
	}
}

// AddPolicy adds one definition of a policy. It must be called before trees are added, in the order of names. The name
// may be that of a built-in policy that a later version introduced: the definition precedes it.
func (ld *Restorer) AddPolicy(spec quota.PolicySpec) error {
	f := &ld.state.Forest
	if n := len(f.Policies.Specs); n > 0 && f.Policies.Specs[n-1].Name >= spec.Name || len(f.Trees) > 0 {
		return fmt.Errorf("policy %q is not in order, or follows a tree", spec.Name)
	}
	p, problem := state.BuiltIn.Define(spec)
	if problem != nil {
		return errors.New(problem.Text)
	}
	f.Policies.With(spec, p)
	f.Bytes += state.PolicySpecSize(&spec)
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
	t, refused := configure.DraftTree(&ld.state.Forest, spec, "tree", ld.state.Forest.Policies)
	if refused != nil {
		return refused
	}
	for _, n := range spec.Nodes {
		// Not checked: the trees of a backup may name roles that the book of the running ledger does not have. Those give
		// nothing.
		t.ByPath[n.Path].Bindings = access.Compile(n.Bindings, ld.state.Book.Roles(), access.NodeScope)
	}
	if ld.state.Forest.Trees[t.Name] != nil {
		return fmt.Errorf("tree %s is there twice", t.Name)
	}
	for _, n := range image.Nodes {
		at := t.ByPath[n.Spec.Path]
		if n.ID == 0 || n.ID > ld.state.Forest.NodeID || ld.nodes[n.ID] != nil {
			return fmt.Errorf("node identity %d of %s is not unique, or was never given", n.ID, at.Place())
		}
		if n.RaisedByRule > ld.state.Now.At {
			return fmt.Errorf("the limits of %s were raised at %d, in the future", at.Place(), n.RaisedByRule)
		}
		if err := restoreCrossed(at, n.Crossed); err != nil {
			return err
		}
		at.ID, at.Dynamic, at.RaisedByRule = n.ID, n.Made, n.RaisedByRule
		ld.nodes[n.ID] = at
		if err := ld.addHold(at, n.Hold); err != nil {
			return err
		}
	}
	if t.Version = image.Version; t.Version > ld.state.Forest.Version {
		return fmt.Errorf("tree %s has version %d, which was never given", t.Name, t.Version)
	}
	admit.RepoolTree(t)
	if err := ld.addStock(t, image.ItemNumbers); err != nil {
		return err
	}
	ld.state.Forest.Trees[t.Name] = t
	ld.state.Forest.Nodes += len(t.ByPath)
	ld.state.Forest.Bytes += t.Bytes()
	return nil
}

// restoreCrossed sets the crossed thresholds. Whether they agree with the use is checked at the end.
func restoreCrossed(n *state.Node, images []CrossedImage) error {
	for _, c := range images {
		r := n.Tree.Resource(c.Resource)
		if r == nil || len(c.Percents) == 0 || n.Crossed[r] != nil {
			return fmt.Errorf("%s has crossed thresholds of %q twice, or none, or without having it", n.Place(), c.Resource)
		}
		n.SetCrossed(r, c.Percents)
	}
	return nil
}

// AddRevision adds one remembered revision.
func (ld *Restorer) AddRevision(r *quota.Revision) error {
	last := uint64(0)
	if known := ld.state.History.Revisions; len(known) > 0 {
		last = known[len(known)-1].Number
	}
	if r.Number <= last || r.Number > ld.state.History.Revision {
		return fmt.Errorf("revision %d follows %d in the history, but the configuration is at %d", r.Number, last,
			ld.state.History.Revision)
	}
	ld.state.History.AddRevision(r)
	return nil
}

// AddHeld adds one held allocation and charges it.
func (ld *Restorer) AddHeld(image AllocationImage) error {
	if len(image.Placed) != len(image.Request.Claims) {
		return fmt.Errorf("allocation %q has %d claims at %d nodes", image.Request.ID, len(image.Request.Claims),
			len(image.Placed))
	}
	a, err := ld.newAllocation(image, func(i int) *state.Node { return ld.nodes[image.Placed[i]] })
	if err != nil {
		return err
	}
	s := ld.state
	if s.Allocations.ByID.Find(a.ID()) != nil {
		return fmt.Errorf("allocation %q is there twice", a.ID())
	}
	if _, taken := s.Allocations.Held.Get(a.Fence()); taken || a.Fence() == 0 || a.Fence() > s.Allocations.Fence {
		return fmt.Errorf("I8: fence %d of allocation %q is not unique, or was never given", a.Fence(), a.ID())
	}
	s.Allocations.ByID.Put(a)
	s.Allocations.Held.Set(a.Fence(), a)
	s.Deadlines.Add(a)
	admit.CountRevocation(&s.Queue, a, 1)
	if err := ld.claimItems(a); err != nil {
		return err
	}
	for i := range a.Claims {
		if err := ld.checkArrivalSeq(a, i, image); err != nil {
			return err
		}
		a.Claims[i].TrackPrincipal(a.Principal())
		s.Allocations.ChargeClaim(a, i)
	}
	return nil
}

func (ld *Restorer) checkArrivalSeq(a *state.Allocation, i int, image AllocationImage) error {
	c := &a.Claims[i]
	home, arrivalSeq := nodeAt(image.Homes, i), nodeAt(image.ArrivalSeqs, i)
	if arrivalSeq == 0 && c.At.Borrows == policy.BorrowSoft {
		return fmt.Errorf("allocation %q has no arrival number at %s, which borrows softly", a.ID(), c.At.Place())
	}
	if home == 0 && arrivalSeq == 0 {
		return nil
	}
	if c.More == nil {
		c.More = &state.ClaimDetails{}
	}
	c.More.ArrivalSeq = arrivalSeq
	if home != 0 {
		c.More.Home = ld.nodes[home]
		if c.More.Home == nil || c.More.Home.Tree != c.At.Tree {
			return fmt.Errorf("allocation %q belongs to a node that does not exist in tree %s", a.ID(), c.At.TreeName)
		}
	}
	if arrivalSeq > ld.state.Allocations.LastArrivalSeq {
		return fmt.Errorf("allocation %q has arrival number %d, which was never given", a.ID(), arrivalSeq)
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
	a, err := ld.newAllocation(image, func(i int) *state.Node {
		return ld.formerNode(state.Address{TreeName: image.Request.Claims[i].Tree, Path: image.PlacedPaths[i]})
	})
	if err != nil {
		return err
	}
	s := ld.state
	waited := image.State == quota.Cancelled || image.State == quota.TimedOut || image.State == quota.Abandoned
	if a.Fence() == 0 && !waited || a.Fence() > s.Allocations.Fence || image.Ended.At < a.Granted.At {
		return fmt.Errorf(
			"I8: ended allocation %q has fence %d, which was never given, or ended before it was granted", a.ID(),
			a.Fence())
	}
	outcome := image.State
	if outcome == quota.Held {
		outcome = quota.Released // snapshots leave it out
	}
	a.Ended = &state.Ending{Stamp: *image.Ended, State: outcome, By: image.By, Reason: image.EndReason}
	younger := s.Allocations.ByID.Find(a.ID())
	s.Allocations.KeepTombstone(a)
	if younger != nil && younger.Ended == nil {
		s.Allocations.ByID.Put(younger) // the id was used again after the tombstone's span
	}
	return nil
}

func (ld *Restorer) formerNode(at state.Address) *state.Node {
	n := ld.formerNodes[at]
	if n == nil {
		n = &state.Node{Address: &at}
		ld.formerNodes[at] = n
	}
	return n
}

// AddEvent adds one remembered event.
func (ld *Restorer) AddEvent(e *quota.Event) error {
	last := uint64(0)
	if known := ld.state.Journal.Events; len(known) > 0 {
		last = known[len(known)-1].Number
	}
	if e.Number <= last || e.Number > ld.state.Journal.LastEvent {
		return fmt.Errorf("event %d follows %d, but the last is %d", e.Number, last, ld.state.Journal.LastEvent)
	}
	ld.state.Journal.AddEvent(e)
	return nil
}

func (ld *Restorer) newAllocation(image AllocationImage, at func(i int) *state.Node) (*state.Allocation, error) {
	if err := admit.CheckID(image.Request.ID); err != nil {
		return nil, err
	}
	if err := image.Undo.Check(ld.state, image.Request.ID); err != nil {
		return nil, err
	}
	if n := len(image.Request.AnyOf); n > quota.MaxAlternatives || image.Alternative < min(1, n) || image.Alternative > n {
		return nil, fmt.Errorf("allocation %q has alternative %d of %d", image.Request.ID, image.Alternative, n)
	}
	a := ld.state.Allocations.Shared.Begin(&image.Request)
	a.SetGrant(image.Fence, image.Granted)
	a.Owner, a.More = image.Owner, image.toDetails()
	for i, c := range image.Request.Claims {
		n := at(i)
		if n == nil || n.TreeName != c.Tree {
			return nil, fmt.Errorf("allocation %q is placed at a node that does not exist in tree %s", a.ID(), c.Tree)
		}
		if err := ld.restoreClaim(&a.Claims[i], c, n); err != nil {
			return nil, fmt.Errorf("allocation %q: %w", a.ID(), err)
		}
		if err := restoreItems(&a.Claims[i], image, i); err != nil {
			return nil, fmt.Errorf("allocation %q: %w", a.ID(), err)
		}
		if i < len(image.Groups) && image.Groups[i] != "" {
			if image.Request.Principal.User == "" {
				return nil, fmt.Errorf("allocation %q is counted in group %s, but has no user", a.ID(), image.Groups[i])
			}
			a.Claims[i].EnsureDetails().Group = image.Groups[i]
		}
	}
	// What is charged next may give a claim an arrival number or a home.
	return ld.state.Allocations.Shared.Keep(len(image.ArrivalSeqs)+len(image.Homes) == 0), nil
}

func (image *AllocationImage) toDetails() *state.Details {
	r, b := image.Request, image.toLease()
	if r.Mode == quota.Hold && r.Principal.User == "" && r.Priority == 0 && !image.Forced && image.Until == 0 &&
		len(image.Preempted)+len(image.Displaced) == 0 && image.Undo == nil && b == nil && !image.isResized() &&
		r.For == 0 && image.DeclaredEnd == 0 {
		return nil
	}
	m := &state.Details{
		Principal: r.Principal, Mode: r.Mode, ReserveFor: r.ReserveFor, Until: image.Until, Forced: image.Forced,
		Preempted: image.Preempted, Room: image.MadeRoom, Lease: b,
		WaitFor: r.WaitFor, Keep: r.Keep, Priority: r.Priority, Declared: r.For,
		EndsAt: image.DeclaredEnd, Undo: image.Undo.Record(),
	}
	if image.isResized() {
		m.Resized = &state.Resized{
			Generation: image.Generation, First: image.First, SplitFrom: image.SplitFrom,
			AnyOf: r.AnyOf, Given: image.Alternative,
			Dropped: image.Dropped, Change: image.Change,
		}
	}
	for _, d := range image.Displaced {
		m.Displaced = append(
			m.Displaced, state.Displacement{
				ID: d.ID, Claim: d.Claim, From: d.From, Home: d.Home, FromSeq: d.FromSeq,
				NewSeq: d.NewSeq,
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
func (image *AllocationImage) toLease() *state.Lease {
	r := image.Request
	if image.TTL == 0 && image.Expires == 0 && len(r.Data)+len(image.Data) == 0 {
		return nil
	}
	return &state.Lease{
		Asked: r.TTL, TTL: image.TTL, Expires: image.Expires, RevokedBy: image.RevokedBy, Reason: image.RevokeReason,
		Unclaimed: image.Unclaimed, AskedData: r.Data, Data: image.Data,
	}
}

func (ld *Restorer) restoreClaim(c *state.PlacedClaim, claim quota.Claim, n *state.Node) error {
	c.At, c.Placed, c.Asked = n, n.Address, n.Address
	if n.Path != claim.Node {
		c.Asked = &state.Address{TreeName: n.TreeName, Path: claim.Node}
	}
	if claim.Standing != (quota.Standing{}) {
		c.More = &state.ClaimDetails{Standing: claim.Standing}
	}
	for j, component := range claim.Amounts {
		r, err := restoreResource(n, component)
		if err != nil {
			return err
		}
		if n.Tree == nil {
			r = ld.formerResource(r)
		}
		c.Amounts[j] = state.PlacedAmount{Resource: r, Amount: component.Amount}
	}
	c.Amounts = c.Amounts[:len(claim.Amounts)]
	return nil
}

// formerResource returns the one that tombstones share for a resource of which they only know the name.
func (ld *Restorer) formerResource(r *state.Resource) *state.Resource {
	known := ld.formerResources[r.Name]
	if known == nil {
		known = r
		ld.formerResources[r.Name] = r
	}
	return known
}

// restoreResource finds the resource of a claim. The node of a tombstone has no tree and accepts any name.
func restoreResource(n *state.Node, c quota.Component) (*state.Resource, error) {
	if c.Amount < 0 || c.Amount > quota.MaxAmount {
		return nil, fmt.Errorf("it holds %d %s", c.Amount, c.Resource)
	}
	if n.Tree == nil {
		return &state.Resource{Resource: quota.Resource{Name: c.Resource}}, nil
	}
	if r := n.Tree.Resource(c.Resource); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("tree %s has no resource %s", n.TreeName, c.Resource)
}

// Finish verifies every invariant and returns the state.
func (ld *Restorer) Finish() (*state.State, error) {
	if ld.state == nil {
		return nil, errors.New("this restorer is finished")
	}
	if err := ld.requeueAll(); err != nil {
		return nil, err
	}
	s := ld.state
	s.Forest.ForgetUses()
	ld.state, s.Restoring = nil, false
	if err := Check(s); err != nil {
		return nil, err
	}
	return s, nil
}
