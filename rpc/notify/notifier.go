package notify

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
)

const (
	// eventsAtOnce is how many events the notifier reads at a time.
	eventsAtOnce = 256
	// retryPause is the pause after an error of the feed.
	retryPause = 50 * time.Millisecond
)

// Feed is the part of [cluster.Node] that a Notifier uses.
type Feed interface {
	// ReadFeed returns events after a position of the log, as far as this node has applied it.
	ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error)
}

// Notifier wakes subscribers. One goroutine reads the feed for all of them, for as long as there are any.
type Notifier struct {
	feed Feed

	mu          sync.Mutex
	subscribers map[Key]map[*Subscription]struct{}
	// wanted is the number of keys with subscribers by their property.
	wanted [properties]int
	// position is that up to which subscribers were woken, at ledger time at.
	position cluster.Position
	at       quota.Instant
	// idle is closed when the last subscriber has gone; nil while there is none.
	idle chan struct{}
}

// New makes a notifier that reads a feed while it has subscribers.
func New(feed Feed) *Notifier {
	return &Notifier{feed: feed, subscribers: map[Key]map[*Subscription]struct{}{}}
}

// Subscription wakes a call when there may be something for it to see. Its methods are for one goroutine.
type Subscription struct {
	notifier *Notifier
	keys     []Key
	woken    chan struct{}
	// pending is true from when it was woken until [Subscription.Advance]; resume is the position before the event that it
	// was woken for. The notifier's mu guards both.
	pending bool
	resume  cluster.Position
}

// Subscribe wakes for events that the feed gets from now on and that have one of the keys. Close must be called.
func (n *Notifier) Subscribe(keys ...Key) *Subscription {
	s := &Subscription{notifier: n, keys: keys, woken: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		if n.subscribers[key] == nil {
			n.subscribers[key] = map[*Subscription]struct{}{}
			n.wanted[key.by]++
		}
		n.subscribers[key][s] = struct{}{}
	}
	if n.idle == nil {
		n.idle, n.position = make(chan struct{}), cluster.LatestPosition()
		go n.follow(n.wakeConcerned(), n.idle)
	}
	return s
}

// Close ends a subscription.
func (s *Subscription) Close() {
	n := s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range s.keys {
		delete(n.subscribers[key], s)
		if len(n.subscribers[key]) == 0 && n.subscribers[key] != nil {
			delete(n.subscribers, key)
			n.wanted[key.by]--
		}
	}
	if len(n.subscribers) == 0 && n.idle != nil {
		close(n.idle)
		n.idle = nil
	}
}

// Woken receives when there may be something new. Several events may wake once.
func (s *Subscription) Woken() <-chan struct{} { return s.woken }

// Advance moves a position, up to which the subscriber has read all of the feed, over events that do not concern it. If
// more is true, it must read on there; else nothing up to there concerns it, and at is ledger time there.
func (s *Subscription) Advance(from cluster.Position) (to cluster.Position, at quota.Instant, more bool) {
	n := s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wakeConcerned()
	to, more = n.position, s.pending
	if more {
		to, s.pending = s.resume, false
		select {
		case <-s.woken:
		default:
		}
	}
	if to.Compare(from) < 0 || to == cluster.LatestPosition() { // the feed could not be read yet
		to = from
	}
	return to, n.at, more
}

// WaitFor calls done at first and after each event with a key, until it returns true or ctx ends.
func (n *Notifier) WaitFor(ctx context.Context, key Key, done func() bool) {
	s := n.Subscribe(key) // before done looks, or an event in between would be missed
	defer s.Close()
	for !done() {
		select {
		case <-s.woken:
		case <-ctx.Done():
			return
		}
	}
}

// HasSubscriber reports whether a call waits for events with a key.
func (n *Notifier) HasSubscriber(key Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subscribers[key]) > 0
}

// IsIdle reports whether there are no subscribers, so that nothing reads the feed.
func (n *Notifier) IsIdle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.idle == nil
}

// follow ends when there are no subscribers.
func (n *Notifier) follow(changed <-chan struct{}, idle chan struct{}) {
	for {
		select {
		case <-changed:
		case <-idle:
			return
		}
		n.mu.Lock()
		if n.idle != idle { // its successor follows
			n.mu.Unlock()
			return
		}
		changed = n.wakeConcerned()
		n.mu.Unlock()
	}
}

// wakeConcerned wakes those whom the events behind the position concern, and returns what is closed when there are
// more. When the feed fails, it wakes all: each gets the error itself, or finds what it missed. It needs mu to be held.
func (n *Notifier) wakeConcerned() (changed <-chan struct{}) {
	for {
		page, err := n.feed.ReadFeed(n.position, eventsAtOnce)
		if err != nil {
			n.wakeAll()
			if page.Next != (cluster.Position{}) { // the first that the feed remembers
				n.position = page.Next
			}
			return afterPause()
		}
		for i := range page.Events {
			eachKey(&page.Events[i], &n.wanted, n.wake)
		}
		if n.position, n.at = page.Next, page.At; page.Behind == 0 {
			return page.Changed
		}
	}
}

func afterPause() <-chan struct{} {
	closed := make(chan struct{})
	time.AfterFunc(retryPause, func() { close(closed) })
	return closed
}

func (n *Notifier) wakeAll() {
	for key := range n.subscribers {
		n.wake(key)
	}
}

func (n *Notifier) wake(key Key) {
	for s := range n.subscribers[key] {
		if !s.pending {
			s.pending, s.resume = true, n.position
		}
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}
}
