package image

import (
	"errors"
	"fmt"
	"iter"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
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

type snapshotWaiter struct {
	record *state.Allocation
	first  snapshotAlternative
	others []snapshotAlternative
	// resizes is that of the waiter.
	resizes uint64
}

type snapshotAlternative struct {
	number    int
	claims    []state.PlacedClaim
	queue     state.Blocker
	headSince quota.Instant
}

func snapshotOfQueue(q *state.WaitQueue) []snapshotWaiter {
	list := make([]snapshotWaiter, 0, q.All.Len())
	for w := range q.All.All() {
		waiter := snapshotWaiter{record: w.Record, resizes: w.Resizes}
		for i, alt := range w.Alternatives {
			entry := snapshotAlternative{alt.Number, alt.Claims, alt.BlockedIn.Blocker, alt.HeadSince}
			if i == 0 {
				waiter.first = entry
			} else {
				waiter.others = append(waiter.others, entry)
			}
		}
		list = append(list, waiter)
	}
	return list
}

func (alt *snapshotAlternative) image() AlternativeImage {
	image := AlternativeImage{Number: alt.number, Line: imageOfBlocker(alt.queue), HeadSince: alt.headSince}
	for i := range alt.claims {
		image.Placed = append(image.Placed, alt.claims[i].At.ID)
		image.PlacedPaths = append(image.PlacedPaths, alt.claims[i].Placed.Path)
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
	place := w.record.More.Waiting
	image := WaitingImage{
		Allocation: imageOfAllocation(w.record), Arrival: place.Arrival, Since: place.Since, Until: place.Until,
		KeepUntil: place.KeepUntil,
		Line:      imageOfBlocker(w.first.queue), HeadSince: w.first.headSince, Resizes: w.resizes,
	}
	for i := range w.others {
		image.Others = append(image.Others, w.others[i].image())
	}
	return image
}

func imageOfBlocker(key state.Blocker) BlockerImage {
	image := BlockerImage{Holder: key.Holder, State: key.State, Item: key.Item, IsHold: key.IsHold, IsAside: key.IsAside}
	if key.Node != nil {
		image.Node = key.Node.ID
	} else if key.Tree != nil {
		image.Tree = key.Tree.Name
	}
	if key.Resource != nil {
		image.Resource = key.Resource.Name
	}
	return image
}

// AddWaiting adds one waiting request.
func (ld *Restorer) AddWaiting(image WaitingImage) error {
	r, s := image.Allocation.Request, ld.state
	first := AlternativeImage{
		Number: image.Allocation.Alternative, Placed: image.Allocation.Placed,
		PlacedPaths: image.Allocation.PlacedPaths, Line: image.Line, HeadSince: image.HeadSince,
	}
	a, err := ld.newWaitingRecord(image.Allocation, first)
	if err != nil {
		return err
	}
	last := image.Arrival + uint64(r.ListCount()) - 1
	held, _ := s.Allocations.Held.Get(image.Resizes)
	switch {
	case image.Resizes != 0 && (held == nil || held.ID() != a.ID() || held.WaitingResize() != nil):
		return fmt.Errorf("a resize of %q waits, but there is no such allocation, or two wait for it", a.ID())
	case image.Resizes == 0 && state.IsLive(s.Allocations.ByID.Find(a.ID())):
		return fmt.Errorf("request %q is there twice", a.ID())
	case r.Mode != quota.Wait || image.Arrival == 0 || last < image.Arrival || last > s.Queue.Arrival ||
		s.Queue.ByArrival[image.Arrival] != nil:
		return fmt.Errorf("arrival %d of request %q is not unique, or was never given, or it does not wait",
			image.Arrival, a.ID())
	}
	a.More.Waiting = &state.Waiting{
		Arrival: image.Arrival, Since: image.Since, Until: image.Until,
		KeepUntil: image.KeepUntil,
	}
	w := &state.Waiter{Record: a, Request: r, Turn: a.QueueTurn(), Resizes: image.Resizes}
	if err := ld.addAlternative(w, a, first); err != nil {
		return err
	}
	for _, other := range image.Others {
		if other.Number <= w.Alternatives[len(w.Alternatives)-1].Number || other.Number > len(r.AnyOf) {
			return fmt.Errorf("request %q waits for its alternative %d, which it does not have or has twice", a.ID(),
				other.Number)
		}
		allocation := image.Allocation
		allocation.Alternative, allocation.First, allocation.Request.Claims = other.Number, nil, r.AnyOf[other.Number-1]
		if state.AsksForRanges(allocation.Request.Claims) {
			allocation.First = allocation.Request.Claims
		}
		b, err := ld.newWaitingRecord(allocation, other)
		if err != nil {
			return err
		}
		if err := ld.addAlternative(w, b, other); err != nil {
			return err
		}
	}
	s.Queue.AddWaiter(w)
	if w.IsResize() {
		s.Allocations.ReplaceRecord(admit.WithResize(held, a, 0))
	}
	return nil
}

func (ld *Restorer) newWaitingRecord(image AllocationImage, at AlternativeImage) (*state.Allocation, error) {
	r := image.Request
	if n := len(r.Claims); len(at.Placed) != n || len(at.PlacedPaths) != n || n == 0 {
		return nil, fmt.Errorf("request %q has %d claims at %d nodes and %d paths", r.ID, n, len(at.Placed),
			len(at.PlacedPaths))
	}
	return ld.newAllocation(image, func(i int) *state.Node { return ld.nodes[at.Placed[i]] })
}

func (ld *Restorer) addAlternative(w *state.Waiter, a *state.Allocation, image AlternativeImage) error {
	wanted := make([]quota.Claim, len(a.Claims))
	for i := range a.Claims {
		path := image.PlacedPaths[i]
		if !quota.IsWithin(path, a.Claims[i].At.Path) {
			return fmt.Errorf("request %q waits at %q, which is not below %s", a.ID(), path, a.Claims[i].At.Place())
		}
		info := a.Claims[i].Info()
		wanted[i] = quota.Claim{
			Tree: info.Tree, Node: path, Amounts: info.Amounts, Picks: info.Picks, Standing: info.Standing,
		}
		if a.HasRanges() && !w.IsResize() {
			wanted[i].Ranges = a.More.Resized.First[i].Ranges
		}
	}
	alt := admit.AddAlternative(w, a, image.Number, wanted)
	alt.HeadSince = image.HeadSince
	key, err := ld.newBlocker(image.Line)
	if err != nil {
		return fmt.Errorf("request %q: %w", a.ID(), err)
	}
	ld.waiting, ld.blockers = append(ld.waiting, alt), append(ld.blockers, key)
	return nil
}

func (ld *Restorer) newBlocker(image BlockerImage) (state.Blocker, error) {
	key := state.Blocker{
		Holder: image.Holder, State: image.State, Item: image.Item, Tree: ld.state.Forest.Trees[image.Tree],
		IsHold: image.IsHold, IsAside: image.IsAside,
	}
	if image.Node != 0 {
		if key.Node = ld.nodes[image.Node]; key.Node == nil {
			return key, fmt.Errorf("its queue is at node %d, which does not exist", image.Node)
		}
		key.Tree = key.Node.Tree
	}
	if key.IsHold && (key.Node == nil || key.Node.Hold == nil) {
		return key, errors.New("it waits for the end of a hold that does not exist")
	}
	if image.Resource == "" {
		return key, nil
	}
	if key.Tree == nil {
		return key, fmt.Errorf("its queue is in tree %q, which does not exist", image.Tree)
	}
	if key.Resource = key.Tree.Resource(image.Resource); key.Resource == nil {
		return key, fmt.Errorf("its queue is for %s, which tree %s does not have", image.Resource, key.Tree.Name)
	}
	return key, nil
}

// requeueAll must run when all held allocations are known.
func (ld *Restorer) requeueAll() error {
	s := ld.state
	for i, alt := range ld.waiting {
		t, refused := admit.AdmissionOf(s, alt)
		if refused != nil && refused.Kind != quota.Full {
			return errors.New("request " + alt.Of.Record.ID() + " waits for what is refused: " + refused.Error())
		}
		key := ld.blockers[i]
		need := quota.Amount(0)
		if refused == nil {
			need = t.AmountNeeded(key)
		}
		headSince := alt.HeadSince
		s.Queue.JoinQueue(alt, key, need)
		alt.HeadSince = headSince
	}
	admit.ClearAllDirty(&s.Queue)
	return nil
}
