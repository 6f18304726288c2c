package handlers

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
)

// GrantNotifier wakes calls that wait for an allocation when the allocation changes. One goroutine reads the feed for
// all of them, for as long as there are any.
type GrantNotifier struct {
	node Node

	mu sync.Mutex
	// subscribers are the waiting calls by the id of the allocation. Each has a channel that is closed once.
	subscribers map[string][]chan struct{}
	// idle is closed when the last call has gone; nil while no call waits.
	idle chan struct{}
}

const (
	// feedBatch is how many events the reader takes at once.
	feedBatch = 256
	// feedRetryPause is the pause after an error of the feed.
	feedRetryPause = 50 * time.Millisecond
)

// NewGrantNotifier makes a notifier that reads the feed of a node while calls wait.
func NewGrantNotifier(node Node) *GrantNotifier {
	return &GrantNotifier{node: node, subscribers: map[string][]chan struct{}{}}
}

// waitFor calls done at first and after each change of the allocation.
func (d *GrantNotifier) waitFor(ctx context.Context, id string, done func() bool) {
	for {
		changed := d.addSubscriber(id) // before done looks, or a change in between would be missed
		if done() {
			d.removeSubscriber(id, changed)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			d.removeSubscriber(id, changed)
			return
		}
	}
}

// addSubscriber returns a channel that is closed at the next change of the allocation.
func (d *GrantNotifier) addSubscriber(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := make(chan struct{})
	d.subscribers[id] = append(d.subscribers[id], changed)
	if d.idle == nil {
		d.idle = make(chan struct{})
		from := cluster.LatestPosition()
		if page, err := d.node.ReadFeed(from, 1); err == nil {
			from = page.Next
		}
		go d.followFeed(from, d.idle)
	}
	return changed
}

func (d *GrantNotifier) removeSubscriber(id string, changed chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.subscribers[id] {
		if other == changed {
			d.subscribers[id] = append(d.subscribers[id][:i:i], d.subscribers[id][i+1:]...)
			break
		}
	}
	if len(d.subscribers[id]) == 0 {
		delete(d.subscribers, id)
	}
	d.stopIfIdle()
}

// stopIfIdle needs mu to be held.
func (d *GrantNotifier) stopIfIdle() {
	if len(d.subscribers) == 0 && d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// followFeed ends when there are no subscribers. When the feed fails, all are notified, and look at the state
// themselves.
func (d *GrantNotifier) followFeed(from cluster.Position, empty <-chan struct{}) {
	for {
		page, err := d.node.ReadFeed(from, feedBatch)
		if err != nil {
			d.notifyAll()
			page = cluster.FeedPage{Next: cluster.LatestPosition(), Changed: afterPause()}
		}
		d.notifyChanged(page.Events)
		from = page.Next
		if page.Behind > 0 {
			continue
		}
		select {
		case <-page.Changed:
		case <-empty:
			return
		}
	}
}

func afterPause() <-chan struct{} {
	closed := make(chan struct{})
	time.AfterFunc(feedRetryPause, func() { close(closed) })
	return closed
}

func (d *GrantNotifier) notifyChanged(news []cluster.WatchEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range news {
		if n.Allocation == nil {
			continue
		}
		d.notifySubscribers(n.Allocation.ID())
	}
	d.stopIfIdle()
}

func (d *GrantNotifier) notifyAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.subscribers {
		d.notifySubscribers(id)
	}
	d.stopIfIdle()
}

// notifySubscribers needs mu to be held.
func (d *GrantNotifier) notifySubscribers(id string) {
	for _, changed := range d.subscribers[id] {
		close(changed)
	}
	delete(d.subscribers, id)
}

// HasSubscriber reports whether a call waits for news of an allocation.
func (d *GrantNotifier) HasSubscriber(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.subscribers[id]) > 0
}

// IsIdle reports whether no call waits, so that nothing reads the feed.
func (d *GrantNotifier) IsIdle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.idle == nil
}
