package image

import (
	"iter"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Snapshot is the state of a ledger at one moment. Another goroutine may read it while the ledger changes. It has facts
// only (configuration, history, allocations); usage is derived from them.
type Snapshot struct {
	Header    Header
	policies  []quota.PolicySpec
	trees     []TreeImage
	revisions []*quota.Revision
	held      ordmap.Map[*state.Allocation]
	ended     ordmap.Map[*state.Allocation]
	items     ordmap.Map[*state.Item]
	events    []*quota.Event
	waiting   []snapshotWaiter
	book      *access.Book
	requests  []*quota.LimitRequest
	webhooks  []*quota.Webhook
	scheduled []ScheduledImage
}

// Header is the part of a snapshot that is not a list.
type Header struct {
	Now      quota.Stamp
	Revision uint64
	// Fence and NodeID are the last assigned ones, and so are ArrivalSeq (of a claim) and Event.
	Fence, NodeID, ArrivalSeq, Event uint64
	// StateSeq and Arrival are the last numbers assigned to an item and to a waiting request, TreeVersion to a tree.
	StateSeq, Arrival, TreeVersion uint64
	// LimitRequest is the number of the last request for limits.
	LimitRequest uint64
	// Webhook is the version of the last change of a webhook.
	Webhook uint64
	// CivilOffset is what is added to ledger time, Civil the civil time at Now; 0 if no offset was ever set.
	CivilOffset quota.Span      `json:",omitzero"`
	Civil       quota.CivilTime `json:",omitzero"`
	// Scheduled is the number of the last scheduled limit.
	Scheduled uint64 `json:",omitzero"`
}

// TreeImage is a tree with the identities of its nodes, parents before children, siblings by name.
type TreeImage struct {
	Name      string
	Settings  quota.TreeSettings
	Resources []quota.Resource
	Nodes     []NodeImage
	// ItemNumbers has for each resource the last number assigned to an item created on demand; nil if all are 0.
	ItemNumbers []uint64
	// Version changes with the usage of the tree; 0 if it has never changed.
	Version uint64
}

// NodeImage is a node with its identity.
type NodeImage struct {
	ID   uint64
	Spec *quota.NodeSpec
	// Made is true for a dynamic node, which is not configured.
	Made bool
	// RaisedByRule is when the rule of the parent last approved a request for limits of the node; 0 if it never has.
	RaisedByRule quota.Instant
	// Crossed are the crossed thresholds of its limits, by resource; nil if there are none.
	Crossed []CrossedImage
	// Hold is nil unless the node is on hold. It must not be changed.
	Hold *state.HoldImage
}

// CrossedImage are the thresholds of one limit that are crossed, rising.
type CrossedImage struct {
	Resource string
	Percents []int
}

// AllocationImage is one allocation.
type AllocationImage struct {
	Request quota.Allocate
	Fence   uint64
	Granted quota.Stamp
	State   quota.State
	// Until is when a reservation ends.
	Until  quota.Instant
	Forced bool
	By     string
	// EndReason is why it ended, RevokeReason why it was revoked; nil if that is not known.
	EndReason, RevokeReason *quota.Reason
	Preempted               []quota.Preempted
	MadeRoom                *quota.MadeRoom
	// DeclaredEnd is when the declared time of the request is over; 0 if it declared none or does not hold yet.
	DeclaredEnd quota.Instant
	Displaced   []DisplacementImage
	// Undo is set for reservations only.
	Undo *admit.UndoImage
	// Placed has the identity of the node of each claim, until it ends.
	Placed []uint64
	// PlacedPaths has the path of the node of each claim of an ended allocation, because the node may not exist any more.
	// For a waiting request it has the requested paths, and Placed the nearest configured nodes.
	PlacedPaths []string
	// Homes, ArrivalSeqs and Groups have rare properties of each claim, see ClaimDetails; nil if no claim has one.
	Homes, ArrivalSeqs []uint64
	Groups             []string
	// Ended is nil while held.
	Ended *quota.Stamp
	// Expires, TTL, RevokedBy and Unclaimed are those of a lease, see AllocationInfo; Data are its present data.
	Expires   quota.Instant
	TTL       quota.Span
	RevokedBy string
	Unclaimed bool
	Data      []quota.Label
	// Items are the held items, by claim, resource and name.
	Items []HeldItemImage
	// Owner is the user of the caller that made the request; empty if it had none.
	Owner string
	// Generation, First and SplitFrom are set if the allocation was resized, transferred or split, and First if the
	// request had ranges, see isResized. The claims of Request are then the present ones, and First those of the request.
	Generation uint64
	First      []quota.Claim
	SplitFrom  string
	// Alternative is the number of the list of Request.AnyOf that the claims of Request are from; 0 if it has none.
	Alternative int
	// Dropped is the highest generation of a Resize that waited and was not carried out; 0 for none.
	Dropped uint64 `json:",omitzero"`
	// Change identifies the last change of what it holds, see isResized; 0 if that is not needed.
	Change uint64 `json:",omitzero"`
}

// LimitRequests are the requests for limits by number. They must not be changed.
func (i *Snapshot) LimitRequests() []*quota.LimitRequest { return i.requests }

// Scheduled are the scheduled limits, in the order in which they were made. They must not be changed.
func (i *Snapshot) Scheduled() []ScheduledImage { return i.scheduled }

// HeldItemImage is an item in an allocation.
type HeldItemImage struct {
	Claim          int
	Resource, Name string
}

// DisplacementImage is a claim that was moved, or an allocation that was preempted, by a reservation.
type DisplacementImage struct {
	ID              string
	Claim           int
	From, Home      uint64
	FromSeq, NewSeq uint64
}

// TakeSnapshot captures the present state. Its cost depends on the number of nodes, not of allocations: everything else
// is shared until it changes.
func TakeSnapshot(s *state.State) *Snapshot {
	image := &Snapshot{
		Header:    HeaderOf(s),
		policies:  s.Forest.Policies.Specs,
		revisions: slices.Clone(s.History.Revisions),
		held:      s.Allocations.Held.Clone(),
		ended:     s.Allocations.Ended.Clone(),
		items:     s.Inventory.Items.Clone(),
		events:    slices.Clone(s.Journal.Events),
		waiting:   snapshotOfQueue(&s.Queue),
		book:      s.Book,
		requests:  slices.Clone(s.Requests.All),
		webhooks:  s.Webhooks.All,
		scheduled: snapshotOfCalendar(&s.Calendar),
	}
	for _, name := range slices.Sorted(maps.Keys(s.Forest.Trees)) {
		image.trees = append(image.trees, snapshotOfTree(s.Forest.Trees[name]))
	}
	return image
}

func snapshotOfTree(t *state.Tree) TreeImage {
	image := TreeImage{
		Name: t.Name, Settings: t.Settings, Resources: t.Registered(),
		Nodes: make([]NodeImage, 0, len(t.ByPath)), ItemNumbers: itemNumbers(t), Version: t.Version,
	}
	t.Root.Walk(func(n *state.Node) bool {
		image.Nodes = append(image.Nodes, NodeImage{
			ID: n.ID, Spec: n.Spec, Made: n.Dynamic, RaisedByRule: n.RaisedByRule, Crossed: crossedImages(n),
			Hold: n.Hold,
		})
		return true
	})
	return image
}

func crossedImages(n *state.Node) []CrossedImage {
	var images []CrossedImage
	if n.Crossed == nil {
		return nil
	}
	for _, r := range n.Tree.Resources {
		if percents := n.Crossed[r]; len(percents) > 0 {
			images = append(images, CrossedImage{Resource: r.Name, Percents: percents})
		}
	}
	return images
}

// Book has accounts, tokens, refusals, the access section and the mode.
func (i *Snapshot) Book() *access.Book { return i.book }

// Policies are the definitions of policies, by name.
func (i *Snapshot) Policies() []quota.PolicySpec { return i.policies }

// Trees are sorted by name.
func (i *Snapshot) Trees() []TreeImage { return i.trees }

// Revisions are the remembered changes of configuration, oldest first.
func (i *Snapshot) Revisions() []*quota.Revision { return i.revisions }

// Held yields held allocations in the order of their fences.
func (i *Snapshot) Held() iter.Seq[AllocationImage] { return images(&i.held) }

// Ended yields ended allocations in the order of their ends.
func (i *Snapshot) Ended() iter.Seq[AllocationImage] { return images(&i.ended) }

func images(m *ordmap.Map[*state.Allocation]) iter.Seq[AllocationImage] {
	return func(yield func(AllocationImage) bool) {
		for _, a := range m.All() {
			if !yield(imageOfAllocation(a)) {
				return
			}
		}
	}
}

// Events are the remembered events, oldest first.
func (i *Snapshot) Events() []*quota.Event { return i.events }

func imageOfAllocation(a *state.Allocation) AllocationImage {
	image := AllocationImage{
		Fence: a.Fence(), Granted: a.Granted, State: a.State(), Owner: a.Owner,
		Request: quota.Allocate{ID: a.ID(), Labels: a.Labels()},
	}
	if a.More != nil {
		addDetails(a.More, &image)
	}
	if a.Ended != nil {
		end := a.Ended.Stamp
		image.Ended, image.By, image.EndReason = &end, a.Ended.By, a.Ended.Reason
	}
	image.Request.Claims = make([]quota.Claim, len(a.Claims))
	for i := range a.Claims {
		addClaim(&a.Claims[i], &image, i)
	}
	return image
}

func addDetails(m *state.Details, image *AllocationImage) {
	image.Request.Principal, image.Request.Mode, image.Request.ReserveFor = m.Principal, m.Mode, m.ReserveFor
	image.Request.WaitFor, image.Request.Keep, image.Request.Priority = m.WaitFor, m.Keep, m.Priority
	image.Until, image.Forced, image.Preempted, image.MadeRoom = m.Until, m.Forced, m.Preempted, m.Room
	image.Request.For, image.DeclaredEnd = m.Declared, m.EndsAt
	if b := m.Lease; b != nil {
		image.Request.TTL, image.Request.Data = b.Asked, b.AskedData
		image.TTL, image.Expires, image.RevokedBy, image.Unclaimed, image.Data = b.TTL, b.Expires, b.RevokedBy,
			b.Unclaimed, b.Data
		image.RevokeReason = b.Reason
	}
	if r := m.Resized; r != nil {
		image.Generation, image.First, image.SplitFrom = r.Generation, r.First, r.SplitFrom
		image.Request.AnyOf, image.Alternative = r.AnyOf, r.Given
		image.Dropped, image.Change = r.Dropped, r.Change
	}
	image.Undo = admit.ImageOfUndo(m.Undo)
	for _, d := range m.Displaced {
		image.Displaced = append(image.Displaced,
			DisplacementImage{
				ID: d.ID, Claim: d.Claim, From: d.From, Home: d.Home, FromSeq: d.FromSeq,
				NewSeq: d.NewSeq,
			})
	}
}

// addClaim writes rare properties only if some claim has them.
func addClaim(c *state.PlacedClaim, image *AllocationImage, i int) {
	info := c.Info()
	image.Request.Claims[i] = quota.Claim{
		Tree: info.Tree, Node: info.Node, Amounts: info.Amounts, Picks: info.Picks,
		Standing: info.Standing,
	}
	for _, h := range c.HeldItems() {
		image.Items = append(image.Items, HeldItemImage{Claim: i, Resource: h.Resource, Name: h.Name})
	}
	n := len(image.Request.Claims)
	if image.Ended == nil {
		image.Placed = append(image.Placed, c.At.ID)
	}
	if image.Ended != nil || image.State == quota.Waiting {
		image.PlacedPaths = append(image.PlacedPaths, c.Placed.Path)
	}
	if c.More == nil {
		return
	}
	if c.More.Home != nil && image.Ended == nil {
		image.Homes = atIndex(image.Homes, n, i, c.More.Home.ID)
	}
	if c.More.ArrivalSeq != 0 && image.Ended == nil {
		image.ArrivalSeqs = atIndex(image.ArrivalSeqs, n, i, c.More.ArrivalSeq)
	}
	if c.More.Group != "" {
		image.Groups = atIndex(image.Groups, n, i, c.More.Group)
	}
}

// atIndex takes a nil list for n zeros.
func atIndex[T any](list []T, n, i int, value T) []T {
	if list == nil {
		list = make([]T, n)
	}
	list[i] = value
	return list
}

// HeaderOf is the header of a snapshot taken now.
func HeaderOf(s *state.State) Header {
	return Header{
		Now: s.Now, Revision: s.History.Revision, Fence: s.Allocations.Fence, NodeID: s.Forest.NodeID,
		ArrivalSeq: s.Allocations.LastArrivalSeq, Event: s.Journal.LastEvent,
		StateSeq: s.Inventory.LastStateSeq, Arrival: s.Queue.Arrival, TreeVersion: s.Forest.Version,
		LimitRequest: s.Requests.Last, Webhook: s.Webhooks.Version,
		CivilOffset: s.Civil.Offset, Civil: s.Civil.Now,
		Scheduled: s.Calendar.Last,
	}
}

// Webhooks are all webhooks, by name. They must not be changed.
func (i *Snapshot) Webhooks() []*quota.Webhook { return i.webhooks }
