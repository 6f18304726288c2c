package handlers

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
)

// GrantNotifier tells those who wait for one allocation each when something has happened to it. One reader of the feed serves all of
// them, for as long as somebody waits.
type GrantNotifier struct {
	node Node

	mu sync.Mutex
	// subscribers are those of everybody who waits, by allocation.
	subscribers map[string][]chan struct{}
	// idle is closed when nobody waits any more; nil while nobody does.
	idle chan struct{}
}

const (
	// feedBatch is how many facts the reader takes at once.
	feedBatch = 256
	// feedRetryPause is kept before the feed is asked again that could not answer.
	feedRetryPause = 50 * time.Millisecond
)

func NewGrantNotifier(node Node) *GrantNotifier {
	return &GrantNotifier{node: node, subscribers: map[string][]chan struct{}{}}
}

// waitFor returns when done says so, which is asked at first and whenever something has happened to the allocation, or when
// the context ends.
func (d *GrantNotifier) waitFor(ctx context.Context, id string, done func() bool) {
	for {
		bell := d.subscribe(id) // before looking, so that nothing is missed
		if done() {
			d.unsubscribe(id, bell)
			return
		}
		select {
		case <-bell:
		case <-ctx.Done():
			d.unsubscribe(id, bell)
			return
		}
	}
}

// subscribe gives a bell that is closed when something happens to the allocation from now on.
func (d *GrantNotifier) subscribe(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	bell := make(chan struct{})
	d.subscribers[id] = append(d.subscribers[id], bell)
	if d.idle == nil {
		d.idle = make(chan struct{})
		from := cluster.LatestPosition()
		if bulletin, err := d.node.Events(from, 1); err == nil {
			from = bulletin.Next
		}
		go d.followFeed(from, d.idle)
	}
	return bell
}

func (d *GrantNotifier) unsubscribe(id string, bell chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.subscribers[id] {
		if other == bell {
			d.subscribers[id] = append(d.subscribers[id][:i:i], d.subscribers[id][i+1:]...)
			break
		}
	}
	if len(d.subscribers[id]) == 0 {
		delete(d.subscribers, id)
	}
	d.stopIfIdle()
}

// stopIfIdle must be called with mu held.
func (d *GrantNotifier) stopIfIdle() {
	if len(d.subscribers) == 0 && d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// followFeed rings until nobody waits any more. If the feed does not answer, everybody looks for himself.
func (d *GrantNotifier) followFeed(from cluster.Position, empty <-chan struct{}) {
	for {
		bulletin, err := d.node.Events(from, feedBatch)
		if err != nil {
			d.notifyAll()
			bulletin = cluster.EventPage{Next: cluster.LatestPosition(), Changed: afterPause()}
		}
		d.notifyChanged(bulletin.News)
		from = bulletin.Next
		if bulletin.Behind > 0 {
			continue
		}
		select {
		case <-bulletin.Changed:
		case <-empty:
			return
		}
	}
}

// afterPause is closed after the pause.
func afterPause() <-chan struct{} {
	closed := make(chan struct{})
	time.AfterFunc(feedRetryPause, func() { close(closed) })
	return closed
}

func (d *GrantNotifier) notifyChanged(news []cluster.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range news {
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

// notifySubscribers must be called with mu held.
func (d *GrantNotifier) notifySubscribers(id string) {
	for _, bell := range d.subscribers[id] {
		close(bell)
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
