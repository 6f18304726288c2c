package notify

import (
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// log is a feed that has all events of a random ledger and remembers the latest of them.
type log struct {
	ledger    *ledger.Ledger
	index     uint64
	events    []cluster.WatchEvent
	forgotten cluster.Position
	changed   chan struct{}
}

func newLog() *log {
	return &log{ledger: ledger.New(quota.DefaultBounds()), changed: make(chan struct{})}
}

func (l *log) apply(c quota.Command) {
	l.index++
	l.ledger.Apply(quota.Stamp{At: quota.Instant(l.index)}, c)
	facts := l.ledger.TakeFacts()
	for i, fact := range facts {
		l.events = append(l.events, cluster.WatchEvent{
			Position: cluster.Position{Index: l.index, Number: uint32(i + 1)}, Fact: fact,
		})
	}
	if len(facts) > 0 {
		changed := l.changed
		l.changed = make(chan struct{})
		close(changed)
	}
}

func (l *log) forget(n int) {
	if n = min(n, len(l.events)); n > 0 {
		l.forgotten, l.events = l.events[n-1].Position, l.events[n:]
	}
}

func (l *log) ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error) {
	last := cluster.PositionAfter(l.index)
	if after == cluster.LatestPosition() {
		after = last
	}
	if after.Compare(l.forgotten) < 0 {
		return cluster.FeedPage{Next: l.forgotten}, &cluster.Error{Reason: cluster.Forgotten, Text: "forgotten"}
	}
	events := slices.DeleteFunc(slices.Clone(l.events), func(e cluster.WatchEvent) bool { return e.Compare(after) <= 0 })
	page := cluster.FeedPage{Events: events, Next: last, At: quota.Instant(l.index), Changed: l.changed}
	if len(events) > most {
		page.Events, page.Behind, page.Next = events[:most], len(events)-most, events[most-1].Position
	}
	return page, nil
}

func drawFilter(t *rapid.T) *Filter {
	f := &Filter{Topics: rapid.SampledFrom([][]quoratev1.WatchTopic{
		nil, {allocations}, {nodes}, {thresholds, configuration}, {allocations, nodes, thresholds, configuration},
	}).Draw(t, "topics")}
	if rapid.Bool().Draw(t, "of a tree") {
		f.Tree = rapid.SampledFrom(quotatest.TreeNames).Draw(t, "tree")
		f.Node = rapid.SampledFrom([]string{"", "a", "a/x", "a/x/p", "b"}).Draw(t, "node")
	}
	if !f.wants(allocations) || len(f.Topics) > 1 {
		return f
	}
	if rapid.Bool().Draw(t, "of a namespace") {
		f.Namespace = "account/hans"
	}
	if rapid.Bool().Draw(t, "of ids") {
		f.IDs = map[string]bool{}
		for _, id := range rapid.SliceOfN(rapid.SampledFrom(quotatest.IDs), 1, 3).Draw(t, "ids") {
			f.IDs[id] = true
		}
	}
	return f
}

// TestAMatchHasAKey: an event that a filter selects has a key of the filter, so that it wakes.
func TestAMatchHasAKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, f := newLog(), drawFilter(t)
		l.apply(quotatest.MixedTree("t").Draw(t, "tree"))
		for range 60 {
			l.apply(quotatest.MixedCommands().Draw(t, "command"))
		}
		all := [properties]int{byTopic: 1, byID: 1, byNamespace: 1, byNode: 1}
		for i := range l.events {
			var keys []Key
			eachKey(&l.events[i], &all, func(k Key) { keys = append(keys, k) })
			if f.Matches(&l.events[i]) && !slices.ContainsFunc(f.Keys(), func(k Key) bool { return slices.Contains(keys, k) }) {
				t.Fatalf("%+v selects an event with the keys %v", f, keys)
			}
		}
	})
}

// reader reads what wakes it, as a watch does.
type reader struct {
	filter   *Filter
	news     *Subscription
	position cluster.Position
	// seen are the events that it has read, want those that match.
	seen, want []cluster.Position
}

func (r *reader) readAll(t *rapid.T, l *log) {
	page, err := l.ReadFeed(r.position, 1<<20)
	if err != nil {
		t.Fatalf("a reader that reads in time: %v", err)
	}
	for i := range page.Events {
		if r.filter.Matches(&page.Events[i]) {
			r.seen = append(r.seen, page.Events[i].Position)
		}
	}
	r.position = page.Next
}

// TestNothingIsMissed: readers that read only when they are woken, and move on over what does not concern them, see
// what one sees that reads everything, also when the feed has forgotten what did not concern them.
func TestNothingIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLog()
		l.apply(quotatest.MixedTree("t").Draw(t, "tree"))
		n := New(l)
		n.idle = make(chan struct{}) // the test does what the goroutine does
		readers := make([]*reader, 3)
		for i := range readers {
			f := drawFilter(t)
			readers[i] = &reader{
				filter: f, news: n.Subscribe(f.Keys()...), position: cluster.PositionAfter(l.index),
			}
		}
		for range 40 {
			before := len(l.events)
			l.apply(quotatest.MixedCommands().Draw(t, "command"))
			if rapid.Bool().Draw(t, "wake now") {
				n.wakeConcerned()
			}
			for _, r := range readers {
				r.expect(l.events[before:])
				r.step(t, l)
			}
			if n.wakeConcerned(); rapid.Bool().Draw(t, "forget") && !slices.ContainsFunc(readers, (*reader).isWoken) {
				l.forget(len(l.events))
			}
		}
		for _, r := range readers {
			r.readIfWoken(t, l)
			if !slices.Equal(r.seen, r.want) {
				t.Fatalf("%+v saw %v, not %v", r.filter, r.seen, r.want)
			}
			r.news.Close()
		}
		if !n.IsIdle() || len(n.subscribers) > 0 || n.wanted != [properties]int{} {
			t.Fatalf("after all have gone: %+v", n)
		}
	})
}

func (r *reader) isWoken() bool { return len(r.news.Woken()) > 0 }

func (r *reader) expect(events []cluster.WatchEvent) {
	for i := range events {
		if r.filter.Matches(&events[i]) {
			r.want = append(r.want, events[i].Position)
		}
	}
}

// step does what a watch does at a time: nothing, what the wake-up says, or a heartbeat.
func (r *reader) step(t *rapid.T, l *log) {
	switch rapid.IntRange(0, 2).Draw(t, "step") {
	case 1:
		r.readIfWoken(t, l)
	case 2:
		to, _, more := r.news.Advance(r.position)
		if to.Compare(r.position) < 0 {
			t.Fatalf("moved back from %v to %v", r.position, to)
		}
		if r.position = to; more {
			r.readAll(t, l)
		}
	}
}

func (r *reader) readIfWoken(t *rapid.T, l *log) {
	select {
	case <-r.news.Woken():
		to, _, more := r.news.Advance(r.position)
		if !more {
			t.Fatal("woken for nothing")
		}
		r.position = to
		r.readAll(t, l)
	default:
	}
}

// TestAWaiterIsWoken: a call that waits is woken by the events of its allocation, and by no others; nothing reads the
// feed when nobody waits.
func TestAWaiterIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}}, Nodes: []quota.NodeSpec{{Path: ""}},
		}}})
		n := New(l)
		looked := 0
		go n.WaitFor(t.Context(), AllocationKey("mine"), func() bool {
			looked++
			return looked == 3
		})
		synctest.Wait()
		for _, step := range []struct {
			id   string
			want int
		}{{"other", 1}, {"mine", 2}} {
			l.apply(quota.Allocate{ID: step.id, Claims: []quota.Claim{
				{Tree: "t", Amounts: quota.Vector{{Resource: "cpu", Amount: 1}}},
			}})
			synctest.Wait()
			if looked != step.want {
				t.Errorf("after an event of %s it has looked %d times, not %d", step.id, looked, step.want)
			}
		}
		if n.IsIdle() || !n.HasSubscriber(AllocationKey("mine")) {
			t.Error("it waits no more")
		}
		l.apply(quota.Release{ID: "mine"})
		synctest.Wait()
		if !n.IsIdle() || looked != 3 {
			t.Errorf("it has looked %d times; idle: %v", looked, n.IsIdle())
		}
	})
}

// TestANodeHasTheKeysOfItsAncestors: who watches a node hears of everything below it.
func TestANodeHasTheKeysOfItsAncestors(t *testing.T) {
	var got []string
	eachNodeKey(nodes, "t", "a/x/p", func(k Key) { got = append(got, k.name+":"+k.node) })
	if want := []string{"t:a/x/p", "t:a/x", "t:a", "t:"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
