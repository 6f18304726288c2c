package ledger

import (
	"errors"
	"fmt"
	"iter"

	"github.com/quorate/quorate/quota"
)

// frozenWaiter is a request in the queue as it stood when the image was taken.
type frozenWaiter struct {
	record    *Allocation
	line      lineKey
	headSince quota.Instant
}

func (q *waitQueue) freeze() []frozenWaiter {
	list := make([]frozenWaiter, 0, q.all.length)
	for w := range q.all.from(firstTurn) {
		list = append(list, frozenWaiter{w.record, w.line.lineKey, w.headSince})
	}
	return list
}

// Waiting yields the requests that wait, in the order of the queue.
func (i *Image) Waiting() iter.Seq[WaitingImage] {
	return func(yield func(WaitingImage) bool) {
		for _, w := range i.waiting {
			if !yield(w.image()) {
				return
			}
		}
	}
}

func (w frozenWaiter) image() WaitingImage {
	place := w.record.more.waiting
	return WaitingImage{
		Allocation: w.record.image(), Arrival: place.arrival, Since: place.since, Until: place.until, KeepUntil: place.keepUntil,
		Line: w.line.image(), HeadSince: w.headSince,
	}
}

func (key lineKey) image() LineImage {
	image := LineImage{Holder: key.holder, State: key.state, Item: key.item}
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

// AddWaiting takes one request that waits and makes it stand in its line.
func (ld *Loader) AddWaiting(image WaitingImage) error {
	r, l := image.Allocation.Request, ld.ledger
	if n := len(r.Claims); len(image.Allocation.Placed) != n || len(image.Allocation.PlacedPaths) != n || n == 0 {
		return fmt.Errorf("request %q has %d claims at %d nodes and %d paths", r.ID, n, len(image.Allocation.Placed), len(image.Allocation.PlacedPaths))
	}
	a, err := ld.allocation(image.Allocation, func(i int) *node { return ld.nodes[image.Allocation.Placed[i]] })
	if err != nil {
		return err
	}
	switch {
	case l.allocations.byID[a.id] != nil && l.allocations.byID[a.id].ended == nil:
		return fmt.Errorf("request %q is there twice", a.id)
	case r.Mode != quota.Wait || image.Arrival == 0 || image.Arrival > l.queue.arrival || l.queue.byArrival[image.Arrival] != nil:
		return fmt.Errorf("arrival %d of request %q is not unique, or was never given, or it does not wait", image.Arrival, a.id)
	}
	a.more.waiting = &waiting{arrival: image.Arrival, since: image.Since, until: image.Until, keepUntil: image.KeepUntil}
	w := &waiter{record: a, request: r, turn: a.turn(), headSince: image.HeadSince}
	w.request.Claims = make([]quota.Claim, len(r.Claims))
	for i, c := range r.Claims {
		path := image.Allocation.PlacedPaths[i]
		if !quota.IsWithin(path, a.claims[i].at.path) {
			return fmt.Errorf("request %q waits at %q, which is not below %s", a.id, path, a.claims[i].at.place())
		}
		c.Node = path
		w.request.Claims[i] = c
	}
	w.anchor()
	key, err := ld.lineKey(image.Line)
	if err != nil {
		return fmt.Errorf("request %q: %w", a.id, err)
	}
	ld.waiters, ld.keys = append(ld.waiters, w), append(ld.keys, key)
	l.queue.addWaiter(w)
	return nil
}

func (ld *Loader) lineKey(image LineImage) (lineKey, error) {
	key := lineKey{holder: image.Holder, state: image.State, item: image.Item, tree: ld.ledger.forest.trees[image.Tree]}
	if image.Node != 0 {
		if key.node = ld.nodes[image.Node]; key.node == nil {
			return key, fmt.Errorf("its line is at node %d, which does not exist", image.Node)
		}
		key.tree = key.node.tree
	}
	if image.Resource == "" {
		return key, nil
	}
	if key.tree == nil {
		return key, fmt.Errorf("its line is in tree %q, which does not exist", image.Tree)
	}
	if key.resource = key.tree.resource(image.Resource); key.resource == nil {
		return key, fmt.Errorf("its line is for %s, which tree %s does not have", image.Resource, key.tree.name)
	}
	return key, nil
}

// lineUp makes the requests stand in their lines, once all that is held is known.
func (ld *Loader) lineUp() error {
	l := ld.ledger
	for i, w := range ld.waiters {
		a, refused := l.placeWaiter(w)
		if refused != nil && refused.Kind != quota.Full {
			return errors.New("request " + w.record.id + " waits for what is refused: " + refused.Error())
		}
		key := ld.keys[i]
		need := quota.Amount(0)
		if a != nil {
			need = key.needs(a)
		}
		headSince := w.headSince
		l.queue.joinLine(w, key, need)
		w.headSince = headSince
	}
	l.queue.calm()
	return nil
}
