package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func describeEvents(list []WatchEvent) []string {
	var words []string
	for _, n := range list {
		words = append(words, fmt.Sprintf("%d.%d at %d: %d %s", n.Index, n.Number, n.At, n.Kind,
			n.Allocation.Info().ID))
	}
	return words
}

func endings(t *testing.T, f *FSM, after Position) []WatchEvent {
	t.Helper()
	b, err := f.ReadFeed(after, FeedSize)
	if err != nil {
		t.Fatal(err)
	}
	var list []WatchEvent
	for _, n := range b.Events {
		if n.Kind == ledger.FactEnded {
			list = append(list, n)
		}
	}
	return list
}

func holdAndEnd(t *testing.T, from, to int) []byte {
	t.Helper()
	var commands []quota.Command
	for i := from; i < to; i++ {
		commands = append(commands, benchAllocate(i), quota.Release{ID: benchAllocate(i).ID})
	}
	return mustEncode(t, commands...)
}

// TestEventsAreEqualOnAllNodes: the position of an event is that of its entry, for any batching of entries.
func TestEventsAreEqualOnAllNodes(t *testing.T) {
	one, other := newTestFSM(t, Options{}), newTestFSM(t, Options{})
	var batch []*raft.Log
	for i := range 3 {
		entry := &raft.Log{Index: uint64(10 + i), Type: raft.LogCommand, Data: holdAndEnd(t, 2*i, 2*i+2)}
		one.Apply(entry)
		batch = append(batch, entry)
	}
	other.ApplyBatch(batch)
	want := describeEvents(endings(t, one, Position{}))
	if len(want) != 6 {
		t.Fatalf("the news are %q", want)
	}
	if diff := cmp.Diff(want, describeEvents(endings(t, other, Position{}))); diff != "" {
		t.Error(diff)
	}
	b, err := one.ReadFeed(Position{}, 1)
	if err != nil || len(b.Events) != 1 || b.Next != b.Events[0].Position || b.Behind == 0 {
		t.Errorf("one at a time: %+v, %v", b, err)
	}
	if got := endings(t, one, After(10)); len(got) != 4 || got[0].Index != 11 {
		t.Errorf("after entry 10: %q", describeEvents(got))
	}
	third := endings(t, one, Position{})[2].Position
	if diff := cmp.Diff(want[3:], describeEvents(endings(t, other, third))); diff != "" {
		t.Errorf("the other node goes on otherwise: %s", diff)
	}
}

// TestAReaderWaitsForMore: at the end of the feed, a reader gets a position to continue from and a channel that is
// closed when there is more.
func TestAReaderWaitsForMore(t *testing.T) {
	f := newTestFSM(t, Options{})
	applyData(f, 10, holdAndEnd(t, 0, 1))
	b, err := f.ReadFeed(After(10), 10)
	if err != nil || len(b.Events) != 0 || b.Next != After(10) {
		t.Fatalf("got %+v, %v", b, err)
	}
	applyData(f, 11, mustEncode(t, quota.Release{ID: "nobody"})) // no event
	select {
	case <-b.Changed:
		t.Error("nothing has happened, but there is word of it")
	default:
	}
	if quiet, err := f.ReadFeed(b.Next, 10); err != nil || quiet.Next != After(11) {
		t.Errorf("the reader stays at %v, %v", quiet.Next, err)
	}
	if latest, err := f.ReadFeed(Latest(), 10); err != nil || len(latest.Events) != 0 || latest.Next != After(11) {
		t.Errorf("the latest: %+v, %v", latest, err)
	}
	applyData(f, 12, holdAndEnd(t, 1, 2))
	<-b.Changed
	if got := endings(t, f, b.Next); len(got) != 1 || got[0].Index != 12 {
		t.Errorf("got %q", describeEvents(got))
	}
	if ahead, err := f.ReadFeed(After(99), 10); err != nil || len(ahead.Events) != 0 || ahead.Next != After(99) {
		t.Errorf("what is to come: %+v, %v", ahead, err)
	}
}

// TestTheFeedForgets: the feed keeps a bounded number of events and returns ErrForgotten for older ones.
func TestTheFeedForgets(t *testing.T) {
	f := newFeed()
	news := make([]WatchEvent, 1000)
	entry := func(index uint64) {
		for i := range news {
			news[i] = WatchEvent{Position: Position{index, uint32(i + 1)}}
		}
		f.append(news, index, quota.Instant(index))
	}
	for index := uint64(1); index <= 70; index++ {
		entry(index)
	}
	// 70,000 events were recorded; the first 4,464 have been dropped.
	if _, err := f.read(Position{5, 463}, 1); !errors.Is(err, ErrForgotten) {
		t.Errorf("a forgotten position: %v", err)
	}
	for _, c := range []struct {
		after, first Position
	}{{Position{5, 464}, Position{5, 465}}, {After(5), Position{6, 1}}, {Position{69, 1000}, Position{70, 1}}} {
		b, err := f.read(c.after, 10)
		if err != nil || len(b.Events) != 10 || b.Events[0].Position != c.first {
			t.Errorf("after %v: %+v, %v", c.after, b, err)
		}
	}
	b, err := f.read(Position{5, 464}, 2*FeedSize)
	if err != nil || len(b.Events) != FeedSize || b.Behind != 0 || b.Next != After(70) {
		t.Errorf("all of it: %d, %d behind, next %v, %v", len(b.Events), b.Behind, b.Next, err)
	}
}

// TestTheFeedBoundsMemory: large events are dropped sooner, and the feed then fills up again with small ones.
func TestTheFeedBoundsMemory(t *testing.T) {
	bounds := quota.DefaultBounds()
	bounds.Ended = 100 // the invariant checks look at all of them after each entry
	f := newTestFSM(t, Options{Bounds: bounds})
	index := uint64(10)
	for i := range 40 {
		var commands []quota.Command
		for j := range 64 {
			heavy := benchAllocate(64*i + j)
			for k := range 32 {
				heavy.Labels = append(heavy.Labels,
					quota.Label{Key: fmt.Sprintf("label-%02d", k), Value: strings.Repeat("x", 256)})
			}
			heavy.Data = []quota.Label{{Key: "data", Value: strings.Repeat("x", 8000)}}
			commands = append(commands, heavy, quota.Release{ID: heavy.ID})
		}
		index++
		f.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: mustEncode(t, commands...)})
	}
	if f.feed.bytes > FeedBytes || f.feed.bytes < FeedBytes/2 || f.feed.count >= 40*128 {
		t.Fatalf("the feed has %d facts with %d bytes", f.feed.count, f.feed.bytes)
	}
	if _, err := f.ReadFeed(After(10), 1); !errors.Is(err, ErrForgotten) {
		t.Errorf("the oldest: %v", err)
	}
	if b, err := f.ReadFeed(After(index-1), 1000); err != nil || len(b.Events) != 128 {
		t.Errorf("the newest: %d, %v", len(b.Events), err)
	}
	sum := int64(0)
	for i := range f.feed.count {
		n := f.feed.eventAt(i)
		sum += n.size()
	}
	if sum != f.feed.bytes {
		t.Errorf("the feed counts %d bytes and has %d", f.feed.bytes, sum)
	}
	news := make([]WatchEvent, 2*FeedSize)
	for i := range news {
		news[i].Position = Position{index + 1, uint32(i + 1)}
	}
	f.feed.append(news, index+1, 0)
	if f.feed.count != FeedSize || f.feed.bytes != 0 {
		t.Errorf("after many small facts: %d with %d bytes", f.feed.count, f.feed.bytes)
	}
}

// TestARestoreBeginsTheFeedAnew: the feed has no events before the index of a restored snapshot.
func TestARestoreBeginsTheFeedAnew(t *testing.T) {
	f := newTestFSM(t, Options{})
	applyData(f, 10, holdAndEnd(t, 0, 1))
	data := snapshotOf(t, f)
	g := New(Options{})
	b, err := g.ReadFeed(Position{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(readCloser{bytes.NewReader(data)}); err != nil {
		t.Fatal(err)
	}
	<-b.Changed
	if _, err := g.ReadFeed(b.Next, 10); !errors.Is(err, ErrForgotten) {
		t.Errorf("from before the snapshot: %v", err)
	}
	applyData(g, 11, holdAndEnd(t, 1, 2))
	if got := endings(t, g, After(10)); len(got) != 1 || got[0].Number == 0 {
		t.Errorf("after the snapshot: %q", describeEvents(got))
	}
}

// TestARestoreRemembersTheLastEvent: a reader that has seen the last event before a snapshot continues,
// although entries without events follow. One that has not learns that it missed some.
func TestARestoreRemembersTheLastEvent(t *testing.T) {
	f := newTestFSM(t, Options{})
	applyData(f, 10, holdAndEnd(t, 0, 1))
	applyData(f, 20, mustEncode(t, quota.Confirm{ID: "unknown"}))
	g := restored(t, snapshotOf(t, f))
	applyData(g, 21, holdAndEnd(t, 1, 2))
	if got := endings(t, g, After(10)); len(got) != 1 || got[0].Index != 21 {
		t.Errorf("behind the last event: %q", describeEvents(got))
	}
	if _, err := g.ReadFeed(Position{Index: 10, Number: 1}, 10); !errors.Is(err, ErrForgotten) {
		t.Errorf("from before the last event: %v", err)
	}
	if again := restored(t, snapshotOf(t, restored(t, snapshotOf(t, f)))); again.lastEvent != 10 {
		t.Errorf("a state that was restored twice has its last event at %d", again.lastEvent)
	}
}

// TestChainCoversEvents: the chain digest covers the events of each entry.
func TestChainCoversEvents(t *testing.T) {
	one, other := New(Options{}), New(Options{})
	one.extendChain([]byte("x"), nil, nil)
	fact := ledger.Fact{Kind: ledger.FactEnded, Allocation: &ledger.Allocation{}}
	other.extendChain([]byte("x"), nil, []WatchEvent{{Fact: fact}})
	if one.chain == other.chain {
		t.Error("the chains are equal")
	}
}

// BenchmarkNews measures the cost of a reader at the end of the feed.
func BenchmarkNews(b *testing.B) {
	f := newFeed()
	f.append(make([]WatchEvent, FeedSize), 5, 0)
	for b.Loop() {
		if _, err := f.read(After(5), 256); err != nil {
			b.Fatal(err)
		}
	}
}
