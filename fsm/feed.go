package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Bounds of what a node remembers for those who watch.
const (
	// FeedSize is how many facts.
	FeedSize = 1 << 16
	// FeedBytes is how much memory their records may take, by the estimate of the ledger: facts keep records that the ledger
	// itself may have forgotten. Ordinary records stay far below it.
	FeedBytes = 64 << 20
)

// ErrForgotten is answered to whoever asks for facts that the feed does not remember any more, or never saw because a
// snapshot took their place.
var ErrForgotten = errors.New("the feed does not remember so far back")

// Position is a place in the feed: just behind the fact of that number in the log entry of that index. It is the same on
// all nodes.
type Position struct {
	Index uint64
	// Number counts the facts of an entry from 1.
	Number uint32
}

// After is the position behind everything that the entry of an index did.
func After(index uint64) Position { return Position{index, math.MaxUint32} }

// Latest is the position behind everything that is applied when the feed is asked.
func Latest() Position { return Position{math.MaxUint64, math.MaxUint32} }

// Compare is negative if p comes before another position, positive if behind it.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Index, other.Index), cmp.Compare(p.Number, other.Number))
}

// News is a fact with its place in the log.
type News struct {
	Position
	ledger.Fact
	// At is ledger time.
	At quota.Instant
}

// size is the memory of its record.
func (n *News) size() int64 {
	if n.Allocation == nil {
		return 0
	}
	return n.Allocation.Size()
}

// Bulletin is what the feed has to say at one moment.
type Bulletin struct {
	// News are in the order of the log.
	News []News
	// Next is the position to go on from.
	Next Position
	// At is ledger time at Next.
	At quota.Instant
	// Behind is how many facts follow Next already.
	Behind int
	// Changed is closed when there is more.
	Changed <-chan struct{}
}

// feed is a bounded memory of facts in the order of the log. The state machine appends and never waits for a reader:
// whoever comes too late finds what it wanted forgotten.
type feed struct {
	mu sync.Mutex
	// ring has count facts, the oldest at first; at most FeedSize.
	ring         []News
	first, count int
	// bytes is what their records take.
	bytes int64
	// forgotten is the last position that is not in the ring any more; last is behind everything applied, at ledger time at.
	forgotten, last Position
	at              quota.Instant
	changed         chan struct{}
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

// append adds the facts of applied entries and moves on to the end of the last one.
func (f *feed) append(news []News, applied uint64, now quota.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range news {
		f.bytes += n.size()
		for f.count == FeedSize || f.count > 0 && f.bytes > FeedBytes {
			f.forgetOldest()
		}
		if f.count == len(f.ring) {
			f.grow()
		}
		f.ring[(f.first+f.count)%len(f.ring)] = n
		f.count++
	}
	f.last, f.at = After(applied), now
	if len(news) > 0 {
		f.wake()
	}
}

// forgetOldest must be called with mu held.
func (f *feed) forgetOldest() {
	oldest := f.ring[f.first]
	f.ring[f.first] = News{}
	f.first, f.count = (f.first+1)%len(f.ring), f.count-1
	f.forgotten = oldest.Position
	f.bytes -= oldest.size()
}

// grow makes the ring larger. It must be called with mu held.
func (f *feed) grow() {
	larger := make([]News, min(max(64, 2*len(f.ring)), FeedSize))
	for i := range f.count {
		larger[i] = f.get(i)
	}
	f.ring, f.first = larger, 0
}

// restart forgets everything: the state is that of a snapshot now.
func (f *feed) restart(applied uint64, now quota.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring, f.first, f.count, f.bytes = nil, 0, 0, 0
	f.forgotten, f.last, f.at = After(applied), After(applied), now
	f.wake()
}

// wake must be called with mu held.
func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// get is one of the facts, the oldest first.
func (f *feed) get(i int) News { return f.ring[(f.first+i)%len(f.ring)] }

// read answers at most so many facts behind a position. What is not applied here yet comes later.
func (f *feed) read(after Position, most int) (Bulletin, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after == Latest() {
		after = f.last
	}
	if after.Compare(f.forgotten) < 0 {
		return Bulletin{}, fmt.Errorf("%w: it begins behind fact %d of entry %d", ErrForgotten, f.forgotten.Number, f.forgotten.Index)
	}
	from := sort.Search(f.count, func(i int) bool { return f.get(i).Compare(after) > 0 })
	to := min(from+most, f.count)
	b := Bulletin{News: make([]News, 0, to-from), Next: after, At: f.at, Behind: f.count - to, Changed: f.changed}
	for i := from; i < to; i++ {
		b.News = append(b.News, f.get(i))
	}
	switch {
	case b.Behind > 0:
		last := b.News[len(b.News)-1]
		b.Next, b.At = last.Position, last.At
	case f.last.Compare(after) > 0:
		b.Next = f.last
	}
	return b, nil
}
