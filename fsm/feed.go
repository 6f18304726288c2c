package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Bounds of the watch events that a node keeps.
const (
	// FeedSize is the largest number of watch events.
	FeedSize = 1 << 16
	// FeedBytes bounds the memory of their records, by the estimate of the ledger: events keep records that the ledger
	// itself may have dropped. Ordinary records stay far below the bound.
	FeedBytes = 64 << 20
)

// ErrForgotten is returned for a position whose events are not in the feed any more, or never were because a snapshot
// replaced them.
var ErrForgotten = errors.New("the feed does not remember so far back")

// Position is a place in the feed: directly after one event of a log entry. It is the same on all nodes.
type Position struct {
	Index uint64
	// Number counts the events of an entry from 1.
	Number uint32
}

// After is the position after all events of the entry at an index.
func After(index uint64) Position { return Position{index, math.MaxUint32} }

// Latest is the position after everything that is applied when the feed is read.
func Latest() Position { return Position{math.MaxUint64, math.MaxUint32} }

// Compare is negative if p comes before other, positive if it comes after.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Index, other.Index), cmp.Compare(p.Number, other.Number))
}

// WatchEvent is a fact with its place in the log.
type WatchEvent struct {
	Position
	ledger.Fact
	At quota.Instant
	// By asked for the command that caused it; nil if the log does not say. It is not part of the state.
	By *access.Caller
}

func (n *WatchEvent) size() int64 { return n.Size() }

// FeedPage is the answer to one read of the feed.
type FeedPage struct {
	// Events are in the order of the log.
	Events []WatchEvent
	// Next is the position to continue from.
	Next Position
	// At is ledger time at Next.
	At quota.Instant
	// Behind is the number of events that already follow Next.
	Behind int
	// Changed is closed when there are more events.
	Changed <-chan struct{}
}

// feed is a bounded ring of watch events in the order of the log. The state machine appends without ever waiting for
// readers: a reader that falls too far behind gets ErrForgotten.
type feed struct {
	mu sync.Mutex
	// ring has count events, the oldest at first; at most FeedSize.
	ring         []WatchEvent
	first, count int
	// bytes is the memory of their records.
	bytes int64
	// forgotten is the last position that has left the ring; last is the position after everything applied, at ledger time
	// at.
	forgotten, last Position
	at              quota.Instant
	changed         chan struct{}
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

func (f *feed) append(news []WatchEvent, applied uint64, now quota.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range news {
		f.bytes += n.size()
		for f.count == FeedSize || f.count > 0 && f.bytes > FeedBytes {
			f.forgetOldest()
		}
		if f.count == len(f.ring) {
			f.growRing()
		}
		f.ring[(f.first+f.count)%len(f.ring)] = n
		f.count++
	}
	f.last, f.at = After(applied), now
	if len(news) > 0 {
		f.notifyReaders()
	}
}

// forgetOldest must be called with mu held.
func (f *feed) forgetOldest() {
	oldest := f.ring[f.first]
	f.ring[f.first] = WatchEvent{}
	f.first, f.count = (f.first+1)%len(f.ring), f.count-1
	f.forgotten = oldest.Position
	f.bytes -= oldest.size()
}

// growRing must be called with mu held.
func (f *feed) growRing() {
	larger := make([]WatchEvent, min(max(64, 2*len(f.ring)), FeedSize))
	for i := range f.count {
		larger[i] = f.eventAt(i)
	}
	f.ring, f.first = larger, 0
}

// restart is needed when a snapshot has replaced the state. forgotten is the index of the last entry that may have had
// events.
func (f *feed) restart(forgotten, applied uint64, now quota.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring, f.first, f.count, f.bytes = nil, 0, 0, 0
	f.forgotten, f.last, f.at = After(forgotten), After(applied), now
	f.notifyReaders()
}

// notifyReaders must be called with mu held.
func (f *feed) notifyReaders() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// eventAt counts from the oldest.
func (f *feed) eventAt(i int) WatchEvent { return f.ring[(f.first+i)%len(f.ring)] }

// read returns up to most events after a position. A position that this node has not applied yet gets an empty page.
// With ErrForgotten, Next is the first position that it remembers.
func (f *feed) read(after Position, most int) (FeedPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after == Latest() {
		after = f.last
	}
	if after.Compare(f.forgotten) < 0 {
		return FeedPage{Next: f.forgotten}, fmt.Errorf("%w: it begins behind fact %d of entry %d", ErrForgotten,
			f.forgotten.Number, f.forgotten.Index)
	}
	from := sort.Search(f.count, func(i int) bool { return f.eventAt(i).Compare(after) > 0 })
	to := min(from+most, f.count)
	b := FeedPage{
		Events: make([]WatchEvent, 0, to-from), Next: after, At: f.at, Behind: f.count - to,
		Changed: f.changed,
	}
	for i := from; i < to; i++ {
		b.Events = append(b.Events, f.eventAt(i))
	}
	switch {
	case b.Behind > 0:
		last := b.Events[len(b.Events)-1]
		b.Next, b.At = last.Position, last.At
	case f.last.Compare(after) > 0:
		b.Next = f.last
	}
	return b, nil
}
