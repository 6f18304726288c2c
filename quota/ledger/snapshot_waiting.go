package ledger

import (
	"errors"
	"fmt"
	"iter"

	"github.com/quorate/quorate/quota"
)

// WaitingImage is one waiting request.
type WaitingImage struct {
	Allocation AllocationImage
	Arrival    uint64
	Since      quota.Stamp
	Until      quota.Instant
	KeepUntil  quota.Instant
	Line       BlockerImage
	// HeadSince is when the request first became the head of a queue; 0 if it has not.
	HeadSince quota.Instant
	// Others are the alternatives that it waits for beside that of Allocation, in order; nil if it has none.
	Others []AlternativeImage
	// Resizes is the fence of the allocation for which this is a Resize, 0 for a request. The claims are then its changes.
	Resizes uint64 `json:",omitzero"`
}

// AlternativeImage is a list of claims of a waiting request.
type AlternativeImage struct {
	// Number is that of the list in the request.
	Number int
	// Placed, PlacedPaths, Line and HeadSince are as for the first alternative.
	Placed      []uint64
	PlacedPaths []string
	Line        BlockerImage
	HeadSince   quota.Instant
}

// BlockerImage identifies what blocks a request; the empty one is a bound of the ledger.
type BlockerImage struct {
	// Node is the node's identity; 0 for items.
	Node     uint64
	Resource string
	// Holder is the user or group whose limit blocks the request.
	Holder quota.Holder
	// Tree, and State or Item, identify items.
	Tree, State, Item string
	// IsHold is true for the hold of the node.
	IsHold bool
	// IsAside is true if the request is larger than the whole limit.
	IsAside bool `json:",omitzero"`
}

// snapshotWaiter is a waiting request as of the snapshot.
type snapshotWaiter struct {
	record *Allocation
	first  snapshotAlternative
	others []snapshotAlternative
	// resizes is that of the waiter.
	resizes uint64
}

// snapshotAlternative is an alternative of a waiting request as of the snapshot.
type snapshotAlternative struct {
	number    int
	claims    []placedClaim
	queue     blocker
	headSince quota.Instant
}

func (q *waitQueue) snapshot() []snapshotWaiter {
	list := make([]snapshotWaiter, 0, q.all.Len())
	for w := range q.all.All() {
		is := snapshotWaiter{record: w.record, resizes: w.resizes}
		for i, alt := range w.alternatives {
			of := snapshotAlternative{alt.number, alt.claims, alt.blockedIn.blocker, alt.headSince}
			if i == 0 {
				is.first = of
			} else {
				is.others = append(is.others, of)
			}
		}
		list = append(list, is)
	}
	return list
}

func (of *snapshotAlternative) image() AlternativeImage {
	image := AlternativeImage{Number: of.number, Line: of.queue.image(), HeadSince: of.headSince}
	for i := range of.claims {
		image.Placed = append(image.Placed, of.claims[i].at.id)
		image.PlacedPaths = append(image.PlacedPaths, of.claims[i].placed.path)
	}
	return image
}

// Waiting yields the waiting requests, in the order of the queue.
func (i *Snapshot) Waiting() iter.Seq[WaitingImage] {
	return func(yield func(WaitingImage) bool) {
		for _, w := range i.waiting {
			if !yield(w.image()) {
				return
			}
		}
	}
}

func (w snapshotWaiter) image() WaitingImage {
	place := w.record.more.waiting
	image := WaitingImage{
		Allocation: w.record.image(), Arrival: place.arrival, Since: place.since, Until: place.until,
		KeepUntil: place.keepUntil,
		Line:      w.first.queue.image(), HeadSince: w.first.headSince, Resizes: w.resizes,
	}
	for i := range w.others {
		image.Others = append(image.Others, w.others[i].image())
	}
	return image
}

func (key blocker) image() BlockerImage {
	image := BlockerImage{Holder: key.holder, State: key.state, Item: key.item, IsHold: key.isHold, IsAside: key.isAside}
	if key.node != nil {
		image.Node = key.node.id
	} else if key.tree != nil {
		image.Tree = key.tree.name
	}
	if key.resource != nil {
		image.Resource = key.resource.Name
	}
	return image
}

// AddWaiting adds one waiting request.
func (ld *Restorer) AddWaiting(image WaitingImage) error {
	r, l := image.Allocation.Request, ld.ledger
	first := AlternativeImage{
		Number: image.Allocation.Alternative, Placed: image.Allocation.Placed,
		PlacedPaths: image.Allocation.PlacedPaths, Line: image.Line, HeadSince: image.HeadSince,
	}
	a, err := ld.newWaitingRecord(image.Allocation, first)
	if err != nil {
		return err
	}
	last := image.Arrival + uint64(r.ListCount()) - 1
	held, _ := l.allocations.held.Get(image.Resizes)
	switch {
	case image.Resizes != 0 && (held == nil || held.id != a.id || held.waitingResize() != nil):
		return fmt.Errorf("a resize of %q waits, but there is no such allocation, or two wait for it", a.id)
	case image.Resizes == 0 && isLive(l.allocations.byID.Find(a.id)):
		return fmt.Errorf("request %q is there twice", a.id)
	case r.Mode != quota.Wait || image.Arrival == 0 || last < image.Arrival || last > l.queue.arrival ||
		l.queue.byArrival[image.Arrival] != nil:
		return fmt.Errorf("arrival %d of request %q is not unique, or was never given, or it does not wait",
			image.Arrival, a.id)
	}
	a.more.waiting = &waiting{
		arrival: image.Arrival, since: image.Since, until: image.Until,
		keepUntil: image.KeepUntil,
	}
	w := &waiter{record: a, request: r, turn: a.queueTurn(), resizes: image.Resizes}
	if err := ld.addAlternative(w, a, first); err != nil {
		return err
	}
	for _, other := range image.Others {
		if other.Number <= w.alternatives[len(w.alternatives)-1].number || other.Number > len(r.AnyOf) {
			return fmt.Errorf("request %q waits for its alternative %d, which it does not have or has twice", a.id,
				other.Number)
		}
		of := image.Allocation
		of.Alternative, of.First, of.Request.Claims = other.Number, nil, r.AnyOf[other.Number-1]
		if asksForRanges(of.Request.Claims) {
			of.First = of.Request.Claims
		}
		b, err := ld.newWaitingRecord(of, other)
		if err != nil {
			return err
		}
		if err := ld.addAlternative(w, b, other); err != nil {
			return err
		}
	}
	l.queue.addWaiter(w)
	if w.isResize() {
		l.allocations.replaceRecord(held.withResize(a, 0))
	}
	return nil
}

// newWaitingRecord rebuilds the record of a waiting request with the claims of one alternative.
func (ld *Restorer) newWaitingRecord(image AllocationImage, at AlternativeImage) (*Allocation, error) {
	r := image.Request
	if n := len(r.Claims); len(at.Placed) != n || len(at.PlacedPaths) != n || n == 0 {
		return nil, fmt.Errorf("request %q has %d claims at %d nodes and %d paths", r.ID, n, len(at.Placed),
			len(at.PlacedPaths))
	}
	return ld.newAllocation(image, func(i int) *node { return ld.nodes[at.Placed[i]] })
}

// addAlternative adds an alternative to a waiting request, with the claims of a record.
func (ld *Restorer) addAlternative(w *waiter, a *Allocation, image AlternativeImage) error {
	wanted := make([]quota.Claim, len(a.claims))
	for i := range a.claims {
		path := image.PlacedPaths[i]
		if !quota.IsWithin(path, a.claims[i].at.path) {
			return fmt.Errorf("request %q waits at %q, which is not below %s", a.id, path, a.claims[i].at.place())
		}
		info := a.claims[i].info()
		wanted[i] = quota.Claim{
			Tree: info.Tree, Node: path, Amounts: info.Amounts, Picks: info.Picks, Standing: info.Standing,
		}
		if a.hasRanges() && !w.isResize() {
			wanted[i].Ranges = a.more.resized.first[i].Ranges
		}
	}
	alt := w.addAlternative(a, image.Number, wanted)
	alt.headSince = image.HeadSince
	key, err := ld.newBlocker(image.Line)
	if err != nil {
		return fmt.Errorf("request %q: %w", a.id, err)
	}
	ld.waiting, ld.blockers = append(ld.waiting, alt), append(ld.blockers, key)
	return nil
}

func (ld *Restorer) newBlocker(image BlockerImage) (blocker, error) {
	key := blocker{
		holder: image.Holder, state: image.State, item: image.Item, tree: ld.ledger.forest.trees[image.Tree],
		isHold: image.IsHold, isAside: image.IsAside,
	}
	if image.Node != 0 {
		if key.node = ld.nodes[image.Node]; key.node == nil {
			return key, fmt.Errorf("its queue is at node %d, which does not exist", image.Node)
		}
		key.tree = key.node.tree
	}
	if key.isHold && (key.node == nil || key.node.hold == nil) {
		return key, errors.New("it waits for the end of a hold that does not exist")
	}
	if image.Resource == "" {
		return key, nil
	}
	if key.tree == nil {
		return key, fmt.Errorf("its queue is in tree %q, which does not exist", image.Tree)
	}
	if key.resource = key.tree.resource(image.Resource); key.resource == nil {
		return key, fmt.Errorf("its queue is for %s, which tree %s does not have", image.Resource, key.tree.name)
	}
	return key, nil
}

// txOf prepares what a waiter asks for, without deciding it.
func (l *Ledger) txOf(alt *alternative) (tx, *quota.Error) {
	if !alt.of.isResize() {
		return l.placedTx(l.placeAlternative(alt))
	}
	h, refused := l.placeResize(alt)
	if refused != nil {
		return tx{}, refused
	}
	return h.asTx(), nil
}

func (l *Ledger) placedTx(a *Allocation, refused *quota.Error) (tx, *quota.Error) {
	return tx{ledger: l, allocation: a}, refused
}

// requeueAll adds the requests to their queues, after all held allocations are known.
func (ld *Restorer) requeueAll() error {
	l := ld.ledger
	for i, alt := range ld.waiting {
		t, refused := l.txOf(alt)
		if refused != nil && refused.Kind != quota.Full {
			return errors.New("request " + alt.of.record.id + " waits for what is refused: " + refused.Error())
		}
		key := ld.blockers[i]
		need := quota.Amount(0)
		if refused == nil {
			need = t.amountNeeded(key)
		}
		headSince := alt.headSince
		l.queue.joinQueue(alt, key, need)
		alt.headSince = headSince
	}
	l.queue.clearAllDirty()
	return nil
}
