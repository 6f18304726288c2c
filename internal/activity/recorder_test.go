package activity

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
)

func (s *scene) expect(t *testing.T, key Key, want ...string) {
	t.Helper()
	if got := s.series(t, key); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("%v:\n%swant\n%s", key, got, strings.Join(want, "\n"))
	}
}

func node(path string) Key { return Key{Tree: "t", Node: path} }

// TestWhatHappensIsSeenAtTheNodeAndAbove: an event is counted at its node and all ancestors, in the step of its time.
func TestWhatHappensIsSeenAtTheNodeAndAbove(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, lease("one", "a/b", 420_000), want("two", "c"))
	s.do(t, waiting("three", "a"))
	s.do(t, waiting("four", "a/b"))
	s.tick(t, 3*time.Minute) // 08:05, three minutes of ledger time
	s.do(t, quota.Renew{ID: "three"}, quota.Renew{ID: "four"})
	s.do(t, quota.Release{ID: "two"}) // three has waited for three minutes
	s.do(t, quota.Renew{ID: "three"}) // and is collected
	s.tick(t, 6*time.Minute)          // 08:11, and one has expired
	s.do(t, quota.Expire{Most: 10})
	s.expect(t, node("a/b"),
		"08:00 held 1 waiting 1 granted 1 released 0 lost 0 longest 0",
		"08:05 held 1 waiting 1 granted 0 released 0 lost 0 longest 0",
		"08:10 held 0 waiting 0 granted 0 released 0 lost 1 longest 0")
	s.expect(t, node("a"),
		"08:00 held 1 waiting 2 granted 1 released 0 lost 0 longest 0",
		"08:05 held 2 waiting 1 granted 1 released 0 lost 0 longest 180000",
		"08:10 held 1 waiting 0 granted 0 released 0 lost 1 longest 0")
	s.expect(t, node("c"),
		"08:00 held 1 waiting 0 granted 1 released 0 lost 0 longest 0",
		"08:05 held 0 waiting 0 granted 0 released 1 lost 0 longest 0",
		"08:10 held 0 waiting 0 granted 0 released 0 lost 0 longest 0")
	s.expect(t, node(""),
		"08:00 held 2 waiting 2 granted 2 released 0 lost 0 longest 0",
		"08:05 held 2 waiting 1 granted 1 released 1 lost 0 longest 180000",
		"08:10 held 1 waiting 0 granted 0 released 0 lost 1 longest 0")
}

// TestADayIsRemembered: a series has the steps of the last 24 hours and no older ones.
func TestADayIsRemembered(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, want("one", "c"))
	for range 400 {
		s.tick(t, 2*StepLength)
		s.do(t, quota.Release{ID: "one"})
		s.tick(t, time.Second)
		s.do(t, want("one-again", "c"), quota.Release{ID: "one-again"}, want("next", "c"))
		s.pass(time.Hour) // the ids can be used again
		s.do(t, quota.Release{ID: "next"})
		s.pass(time.Hour)
		s.do(t, want("one", "c"))
	}
	steps, err := s.steps(t, node("c"))
	if err != nil || len(steps) != Steps {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for i, step := range steps[:len(steps)-1] {
		if next := steps[i+1]; !next.From.Equal(step.From.Add(StepLength)) || next.Held != 1 {
			t.Fatalf("%+v follows %+v", next, step)
		}
	}
	if kept := len(s.nodes.findSeries(node("c")).counts.entries); kept > Steps {
		t.Errorf("%d steps are kept", kept)
	}
	last := steps[len(steps)-1]
	if now := s.wall.now(); now.Before(last.From) || !now.Before(last.From.Add(StepLength)) || last.Granted != 3 ||
		last.Released != 3 {
		t.Errorf("at %v the last step is %+v", now, last)
	}
}

// TestTheClockIsSet sets the wall clock forwards and back: no step is in the future, and counting continues.
func TestTheClockIsSet(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, want("one", "c"))
	s.tick(t, 12*time.Minute) // 08:14
	s.do(t, want("two", "c"))
	s.tick(t, -9*time.Minute) // 08:05
	s.do(t, quota.Release{ID: "one"})
	s.expect(t, node("c"),
		"08:00 held 1 waiting 0 granted 1 released 0 lost 0 longest 0",
		"08:05 held 1 waiting 0 granted 0 released 1 lost 0 longest 0")
	s.tick(t, -time.Hour) // 07:05
	s.do(t, quota.Release{ID: "two"})
	s.expect(t, node("c"), "07:05 held 0 waiting 0 granted 0 released 1 lost 0 longest 0")
	s.tick(t, 48*time.Hour)
	if steps, err := s.steps(t, node("c")); err != nil || len(steps) != Steps ||
		steps[0].Released != 0 {
		t.Errorf("after two days: %d steps, %v", len(steps), err)
	}
}

// TestWhereNothingHappensThereIsNoSeries: a node without activity has no series; one that held something before the
// start has one.
func TestWhereNothingHappensThereIsNoSeries(t *testing.T) {
	s := newScene(t, Bounds{})
	if got := s.series(t, node("c")); !strings.Contains(got, "nothing happen to t:c") {
		t.Errorf("got %q", got)
	}
	if got := s.series(t, Key{Tree: "t", Resource: "gpu"}); !strings.Contains(got, "resource gpu of t") {
		t.Errorf("got %q", got)
	}
	s.do(t, want("one", "c"))
	s.forget()
	s.tick(t, 0)
	s.expect(t, node("c"), "08:00 held 1 waiting 0 granted 0 released 0 lost 0 longest 0")
}

// TestAfterAGapItGoesOnFromNow: events that the feed has dropped are not counted, later ones are, and the values at the
// end of a step are correct.
func TestAfterAGapItGoesOnFromNow(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, want("one", "c"))
	s.tick(t, 5*time.Minute)
	s.do(t, quota.Release{ID: "one"})
	s.forget()
	s.tick(t, time.Second)
	s.do(t, want("two", "a"), want("three", "c"))
	s.expect(t, node("c"),
		"08:00 held 1 waiting 0 granted 1 released 0 lost 0 longest 0",
		"08:05 held 1 waiting 0 granted 1 released 0 lost 0 longest 0")
	if page := s.page(t); !strings.Contains(page, "quorate_activity_gaps_total 1") {
		t.Errorf("the gap is not reported:\n%s", page)
	}
}

// TestBoundsHold: if there are too many series, the one with the oldest activity is dropped.
func TestBoundsHold(t *testing.T) {
	s := newScene(t, Bounds{Nodes: 3, Resources: 1, States: 2})
	s.do(t, want("one", "c")) // changes c and the root
	s.do(t, want("two", "a")) // a and the root
	s.expect(t, node("a"), "08:00 held 1 waiting 0 granted 1 released 0 lost 0 longest 0")
	s.do(t, quota.Release{ID: "one"})
	s.do(t, waiting("three", "a/b")) // a/b, a and the root: c has to go
	for _, path := range []string{"a/b", "a", ""} {
		if got := s.series(t, node(path)); !strings.HasPrefix(got, "08:00 held") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := s.series(t, node("c")); !strings.Contains(got, "much more elsewhere") {
		t.Errorf("c: %s", got)
	}
	if n := len(s.nodes.byKey); n != 3 || s.nodes.order.Len() != 3 {
		t.Errorf("there are %d series", n)
	}
}

// TestItems: a sample counts items by state; the rarest states beyond the bound count together.
func TestItems(t *testing.T) {
	s := newScene(t, Bounds{Nodes: 10, Resources: 1, States: 3})
	s.applySample(
		sample{
			items: []quota.ItemCount{
				{Tree: "t", Resource: "gpu", States: []quota.NamedCount{
					{Name: "dirty", Count: 1},
					{Name: "free", Count: 2},
				}},
			},
		}, stepAt(s.wall.now()),
	)
	key := Key{Tree: "t", Resource: "gpu"}
	list := func() string {
		return fmt.Sprint(s.resources.findSeries(key).listSteps(stepAt(s.wall.now()), Steps)[0].States)
	}
	if got := list(); got != "[{dirty 1} {free 2}]" {
		t.Errorf("got %s", got)
	}
	picks := []quota.WaitingClaim{
		{Tree: "t", Node: "a", Picks: []quota.Pick{
			{Resource: "gpu", Count: 1},
			{Resource: "gpu", Count: 2, State: "dirty"},
		}},
	}
	s.applySample(sample{
		trees: []treeSample{
			{name: "t", resources: []quota.NamedCount{{Name: "gpu", Count: 3}, {Name: "cpu", Count: 1}}},
		},
		waiting: picks,
	}, stepAt(s.wall.now()))
	if got := s.resources.findSeries(key).listSteps(stepAt(s.wall.now()), Steps)[0]; got.Held != 3 || got.Waiting != 1 ||
		got.States != nil {
		t.Errorf("got %+v", got)
	}
	if len(s.resources.byKey) != 1 {
		t.Errorf("there are %d series of resources", len(s.resources.byKey))
	}
}

func TestRareStatesCountTogether(t *testing.T) {
	all := []quota.NamedCount{
		{Name: "a", Count: 1},
		{Name: "b", Count: 5},
		{Name: "c", Count: 1},
		{Name: "d", Count: 3},
	}
	for most, want := range map[int]string{
		4: "[{a 1} {b 5} {c 1} {d 3}]", 3: "[{(others) 2} {b 5} {d 3}]",
		2: "[{(others) 5} {b 5}]",
	} {
		if got := fmt.Sprint(mostFrequent(all, most)); got != want {
			t.Errorf("at most %d: %s, want %s", most, got, want)
		}
	}
	if all[1].Count != 5 || all[1].Name != "b" {
		t.Errorf("the sample was changed: %v", all)
	}
}

// TestSamplesAreRare checks that frequent calls share samples.
func TestSamplesAreRare(t *testing.T) {
	s := newScene(t, Bounds{})
	s.do(t, want("one", "c"))
	s.series(t, node("c"))
	before := s.reads
	for range 100 {
		s.series(t, node("c"))
	}
	if looks := s.reads - before; looks != 100 { // one each, for the position in the log
		t.Errorf("the ledger was read %d times", looks)
	}
}

// TestBeforeItHasBegun: a recorder that has not begun returns an error.
func TestBeforeItHasBegun(t *testing.T) {
	s := newScene(t, Bounds{})
	s.begun = false
	if _, err := s.steps(t, node("")); cluster.ReasonOf(err) != cluster.NoLeader {
		t.Errorf("got %v", err)
	}
	s.failing = &cluster.Error{Reason: cluster.Halted, Text: "no more"}
	if _, err := s.steps(t, node("")); cluster.ReasonOf(err) != cluster.Halted {
		t.Errorf("got %v", err)
	}
}

// TestManyAskWhileMuchHappens is for the race detector; the counts must add up.
func TestManyAskWhileMuchHappens(t *testing.T) {
	s := newScene(t, Bounds{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 50 {
				s.series(t, node("c"))
				s.page(t)
			}
		})
	}
	for i := range 200 {
		id := fmt.Sprint("x", i)
		s.do(t, want(id, "c"), quota.Release{ID: id})
		s.wall.add(time.Second)
	}
	workers.Wait()
	steps, err := s.steps(t, node("c"))
	if err != nil {
		t.Fatal(err)
	}
	granted, released := 0, 0
	for _, step := range steps {
		granted, released = granted+step.Granted, released+step.Released
	}
	if granted != 200 || released != 200 {
		t.Errorf("%d granted, %d released", granted, released)
	}
}
