package ledger

import (
	"iter"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
)

// Snapshot is the state of a ledger at one moment. Another goroutine may read it while the ledger changes. It has facts
// only (configuration, history, allocations); usage is derived from them.
type Snapshot struct {
	Header    Header
	policies  []quota.PolicySpec
	trees     []TreeImage
	revisions []*quota.Revision
	held      ordmap.Map[*Allocation]
	ended     ordmap.Map[*Allocation]
	items     ordmap.Map[*item]
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
	// Fence and NodeID are the last assigned ones, and so are Seat (the arrival number of a claim) and Event.
	Fence, NodeID, Seat, Event uint64
	// Turn and Arrival are the last numbers assigned to an item and to a waiting request, TreeVersion to a tree.
	Turn, Arrival, TreeVersion uint64
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
	Hold *HoldImage
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
	Undo *UndoImage
	// Placed has the identity of the node of each claim, until it ends.
	Placed []uint64
	// PlacedPaths has the path of the node of each claim of an ended allocation, because the node may not exist any more.
	// For a waiting request it has the requested paths, and Placed the nearest configured nodes.
	PlacedPaths []string
	// Homes, Seats and Groups have rare properties of each claim, see claimDetails; nil if no claim has one.
	Homes, Seats []uint64
	Groups       []string
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
	// request had ranges, see resized. The claims of Request are then the present ones, and First those of the request.
	Generation uint64
	First      []quota.Claim
	SplitFrom  string
	// Alternative is the number of the list of Request.AnyOf that the claims of Request are from; 0 if it has none.
	Alternative int
	// Dropped is the highest generation of a Resize that waited and was not carried out; 0 for none.
	Dropped uint64 `json:",omitzero"`
	// Change identifies the last change of what it holds, see resized; 0 if that is not needed.
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
	ID             string
	Claim          int
	From, Home     uint64
	FromSeat, Seat uint64
}

// Snapshot captures the present state. Its cost depends on the number of nodes, not of allocations.
func (l *Ledger) Snapshot() *Snapshot {
	image := &Snapshot{
		Header:    l.Header(),
		policies:  l.forest.policies.specs,
		revisions: slices.Clone(l.history.revisions),
		held:      l.allocations.held.Clone(),
		ended:     l.allocations.ended.Clone(),
		items:     l.inventory.items.Clone(),
		events:    slices.Clone(l.journal.events),
		waiting:   l.queue.snapshot(),
		book:      l.book,
		requests:  slices.Clone(l.requests.all),
		webhooks:  l.webhooks.all,
		scheduled: l.calendar.snapshot(),
	}
	for _, name := range slices.Sorted(maps.Keys(l.forest.trees)) {
		image.trees = append(image.trees, l.forest.trees[name].snapshot())
	}
	return image
}

func (t *tree) snapshot() TreeImage {
	image := TreeImage{
		Name: t.name, Settings: t.settings, Resources: t.registered(),
		Nodes: make([]NodeImage, 0, len(t.byPath)), ItemNumbers: t.itemNumbers(), Version: t.version,
	}
	t.root.walk(func(n *node) bool {
		image.Nodes = append(image.Nodes, NodeImage{
			ID: n.id, Spec: n.spec, Made: n.dynamic, RaisedByRule: n.raisedByRule, Crossed: n.crossedImages(),
			Hold: n.hold,
		})
		return true
	})
	return image
}

func (n *node) crossedImages() []CrossedImage {
	var images []CrossedImage
	if n.crossed == nil {
		return nil
	}
	for _, r := range n.tree.resources {
		if percents := n.crossed[r]; len(percents) > 0 {
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

func images(m *ordmap.Map[*Allocation]) iter.Seq[AllocationImage] {
	return func(yield func(AllocationImage) bool) {
		for _, a := range m.All() {
			if !yield(a.image()) {
				return
			}
		}
	}
}

// Events are the remembered events, oldest first.
func (i *Snapshot) Events() []*quota.Event { return i.events }

func (a *Allocation) image() AllocationImage {
	image := AllocationImage{
		Fence: a.fence, Granted: a.granted, State: a.State(), Owner: a.owner,
		Request: quota.Allocate{ID: a.id, Labels: a.labels()},
	}
	if a.more != nil {
		a.more.addTo(&image)
	}
	if a.ended != nil {
		end := a.ended.Stamp
		image.Ended, image.By, image.EndReason = &end, a.ended.by, a.ended.reason
	}
	image.Request.Claims = make([]quota.Claim, len(a.claims))
	for i := range a.claims {
		a.claims[i].addTo(&image, i)
	}
	return image
}

func (m *details) addTo(image *AllocationImage) {
	image.Request.Principal, image.Request.Mode, image.Request.ReserveFor = m.principal, m.mode, m.reserveFor
	image.Request.WaitFor, image.Request.Keep, image.Request.Priority = m.waitFor, m.keep, m.priority
	image.Until, image.Forced, image.Preempted, image.MadeRoom = m.until, m.forced, m.preempted, m.room
	image.Request.For, image.DeclaredEnd = m.declared, m.endsAt
	if b := m.lease; b != nil {
		image.Request.TTL, image.Request.Data = b.asked, b.askedData
		image.TTL, image.Expires, image.RevokedBy, image.Unclaimed, image.Data = b.ttl, b.expires, b.revokedBy,
			b.unclaimed, b.data
		image.RevokeReason = b.reason
	}
	if r := m.resized; r != nil {
		image.Generation, image.First, image.SplitFrom = r.generation, r.first, r.splitFrom
		image.Request.AnyOf, image.Alternative = r.anyOf, r.given
		image.Dropped, image.Change = r.dropped, r.change
	}
	image.Undo = m.undo.image()
	for _, d := range m.displaced {
		image.Displaced = append(image.Displaced,
			DisplacementImage{
				ID: d.id, Claim: d.claim, From: d.from, Home: d.home, FromSeat: d.fromSeq,
				Seat: d.newSeq,
			})
	}
}

// addTo adds the claim to an image. Rare properties are written only if some claim has them.
func (c *placedClaim) addTo(image *AllocationImage, i int) {
	info := c.info()
	image.Request.Claims[i] = quota.Claim{
		Tree: info.Tree, Node: info.Node, Amounts: info.Amounts, Picks: info.Picks,
		Standing: info.Standing,
	}
	for _, h := range c.heldItems() {
		image.Items = append(image.Items, HeldItemImage{Claim: i, Resource: h.resource, Name: h.name})
	}
	n := len(image.Request.Claims)
	if image.Ended == nil {
		image.Placed = append(image.Placed, c.at.id)
	}
	if image.Ended != nil || image.State == quota.Waiting {
		image.PlacedPaths = append(image.PlacedPaths, c.placed.path)
	}
	if c.more == nil {
		return
	}
	if c.more.home != nil && image.Ended == nil {
		image.Homes = atIndex(image.Homes, n, i, c.more.home.id)
	}
	if c.more.arrivalSeq != 0 && image.Ended == nil {
		image.Seats = atIndex(image.Seats, n, i, c.more.arrivalSeq)
	}
	if c.more.group != "" {
		image.Groups = atIndex(image.Groups, n, i, c.more.group)
	}
}

// atIndex sets one of n values; a nil list stands for n zeros.
func atIndex[T any](list []T, n, i int, value T) []T {
	if list == nil {
		list = make([]T, n)
	}
	list[i] = value
	return list
}

// Header is the header of a snapshot taken now.
func (l *Ledger) Header() Header {
	return Header{
		Now: l.now, Revision: l.history.revision, Fence: l.allocations.fence, NodeID: l.forest.nodeID,
		Seat: l.allocations.lastArrivalSeq, Event: l.journal.lastEvent,
		Turn: l.inventory.lastStateSeq, Arrival: l.queue.arrival, TreeVersion: l.forest.version,
		LimitRequest: l.requests.last, Webhook: l.webhooks.version,
		CivilOffset: l.civil.offset, Civil: l.civil.now,
		Scheduled: l.calendar.last,
	}
}

// Webhooks are all webhooks, by name. They must not be changed.
func (i *Snapshot) Webhooks() []*quota.Webhook { return i.webhooks }
