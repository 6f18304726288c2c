package gate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// fakeSource is a scheduler. What it lists may be older than what is there.
type fakeSource struct {
	*callBudget
	quorate  *fakeQuorate
	fail     func(string, ...any)
	works    []Work
	lagging  []Work // what List returns; nil for the present
	statuses map[string]Status
}

func copyWorks(works []Work) []Work {
	copied := slices.Clone(works)
	for i := range copied {
		copied[i].Members = slices.Clone(copied[i].Members)
	}
	return copied
}

func (s *fakeSource) member(w, m string) *Member {
	for i := range s.works {
		for j := range s.works[i].Members {
			if s.works[i].Key == w && s.works[i].Members[j].Key == m {
				return &s.works[i].Members[j]
			}
		}
	}
	return nil
}

func (s *fakeSource) List(context.Context) ([]Work, error) {
	if _, crash := s.spend(); crash != nil {
		return nil, crash
	}
	if s.lagging != nil {
		return copyWorks(s.lagging), nil
	}
	return copyWorks(s.works), nil
}

func (s *fakeSource) IsIdle(_ context.Context, key string, _ map[string]string) (bool, error) {
	if _, crash := s.spend(); crash != nil {
		return false, crash
	}
	for i := range s.works {
		if s.works[i].Key == key && s.works[i].count(Open, Stopping) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// Open opens a gate, and checks that the work holds what its open members need.
func (s *fakeSource) Open(_ context.Context, w Work, m Member) error {
	carryOut, crash := s.spend()
	current := s.member(w.Key, m.Key)
	if !carryOut || current == nil || current.State != Closed {
		return crash
	}
	current.State = Open
	if running, held := s.running(w.Key), s.quorate.heldFor(w.Key); running > held {
		s.fail("%s was opened: %d run and %d are held", m.Key, running, held)
	}
	return crash
}

// running is what the members of a work use, or of all works with an empty key.
func (s *fakeSource) running(key string) (sum int64) {
	for i := range s.works {
		for _, c := range s.works[i].total(Open, Stopping) {
			if key == "" || s.works[i].Key == key {
				sum += c.Amounts["cores"]
			}
		}
	}
	return sum
}

func (s *fakeSource) Evict(_ context.Context, w Work, m Member, _ time.Time, _ string) error {
	carryOut, crash := s.spend()
	if current := s.member(w.Key, m.Key); carryOut && current != nil && current.State == Open {
		current.State = Stopping
	}
	return crash
}

func (s *fakeSource) Tell(_ context.Context, w Work, status Status) error {
	s.statuses[w.Key] = status
	return nil
}

// world has both sides and the process between them.
type world struct {
	*rapid.T
	source  *fakeSource
	quorate *fakeQuorate
	budget  *callBudget
	loop    *Loop
	clock   time.Time
	works   int
	// evictable is true once something has taken an allocation away from what runs.
	evictable bool
}

func newWorld(t *rapid.T) *world {
	w := &world{T: t, budget: &callBudget{}, clock: time.Unix(1_000_000, 0)}
	w.quorate = &fakeQuorate{callBudget: w.budget, limit: 10}
	w.source = &fakeSource{callBudget: w.budget, quorate: w.quorate, fail: t.Fatalf, statuses: map[string]Status{}}
	w.start(false)
	return w
}

// start begins a new process, which knows nothing, and draws after how many calls it is killed.
func (w *world) start(forEver bool) {
	w.budget.unlimited = forEver
	w.budget.left = rapid.IntRange(1, 60).Draw(w.T, "calls until the crash")
	w.budget.carryOut = rapid.Bool().Draw(w.T, "the last call is carried out")
	loop, err := New(Settings{Prefix: "p", Parallel: 1, Log: slog.New(slog.DiscardHandler)}, w.source, w.quorate)
	if err != nil {
		w.Fatal(err)
	}
	loop.now, loop.book.now = func() time.Time { return w.clock }, func() time.Time { return w.clock }
	w.loop, w.quorate.report = loop, loop.noteChange
	for w.resyncs() != nil && w.budget.left < 0 && !forEver { // killed while it began
		w.start(forEver)
		return
	}
}

func (w *world) resyncs() error {
	_, err := w.loop.resync(w.Context())
	return err
}

// pass lets time pass and the process act, and starts it again if it was killed.
func (w *world) pass() {
	w.clock = w.clock.Add(mostPause)
	w.loop.pass(w.Context())
	if !w.budget.unlimited && w.budget.left <= 0 {
		w.start(false)
	}
}

func (w *world) addWork() {
	w.works++
	size := rapid.IntRange(1, 3).Draw(w.T, "size")
	work := Work{Key: fmt.Sprint("w", w.works), Wanted: size, User: "ann"}
	for i := range rapid.IntRange(1, size+1).Draw(w.T, "arrived") {
		cores := rapid.Int64Range(1, 5).Draw(w.T, "cores")
		work.Members = append(work.Members, member(fmt.Sprint(work.Key, "-", i), Closed, cores))
	}
	w.source.works = append(w.source.works, work)
}

// anyMember returns nil if no member is in one of the states.
func (w *world) anyMember(states ...MemberState) *Member {
	var found []*Member
	for i := range w.source.works {
		for j := range w.source.works[i].Members {
			if m := &w.source.works[i].Members[j]; slices.Contains(states, m.State) {
				found = append(found, m)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(w.T, "member")
}

func (w *world) anyAllocation(ranks ...int) *quoratev1.Allocation {
	var found []*quoratev1.Allocation
	for _, a := range w.quorate.records {
		if slices.Contains(ranks, rank(a)) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(w.T, "allocation")
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": func(*rapid.T) { w.addWork() },
		"add a member": func(*rapid.T) {
			if len(w.source.works) == 0 {
				return
			}
			i := rapid.IntRange(0, len(w.source.works)-1).Draw(w.T, "work")
			work := &w.source.works[i]
			key := fmt.Sprint(work.Key, "-", len(work.Members), "-", w.clock.Unix(), "-", w.quorate.index)
			work.Members = append(work.Members, member(key, Closed, 2))
		},
		"end a member": func(*rapid.T) {
			if m := w.anyMember(Closed, Open, Stopping); m != nil {
				m.State = Ended
			}
		},
		"stop a member": func(*rapid.T) {
			if m := w.anyMember(Open); m != nil {
				m.State = Stopping
			}
		},
		"remove a work that has ended": func(*rapid.T) {
			w.source.works = slices.DeleteFunc(w.source.works,
				func(work Work) bool { return work.count(Closed, Open, Stopping) == 0 })
		},
		"revoke": func(*rapid.T) {
			if a := w.anyAllocation(1); a != nil {
				w.quorate.set(a, a.GetState(),
					func(a *quoratev1.Allocation) { a.RevokedBy = &quoratev1.AllocationRef{Namespace: "default", Id: "x"} })
			}
		},
		"preempt": func(*rapid.T) {
			if a := w.anyAllocation(1, 2); a != nil {
				w.evictable = true
				w.quorate.end(a, quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED)
			}
		},
		"abandon": func(*rapid.T) {
			if a := w.anyAllocation(0); a != nil {
				w.quorate.end(a, quoratev1.AllocationState_ALLOCATION_STATE_ABANDONED)
			}
		},
		"forget":       func(*rapid.T) { w.quorate.forgetEnded() },
		"list lags":    func(*rapid.T) { w.source.lagging = copyWorks(w.source.works) },
		"list catches": func(*rapid.T) { w.source.lagging = nil },
		"resync":       func(*rapid.T) { _ = w.resyncs() },
		"pass":         func(*rapid.T) { w.pass() },
		"pass again":   func(*rapid.T) { w.pass() },
		"":             func(*rapid.T) { w.check() },
	}
}

// check is an invariant at all times: what runs is within the limit, unless the cluster itself has taken an allocation
// away.
func (w *world) check() {
	if running := w.source.running(""); running > w.quorate.limit && !w.evictable {
		w.Fatalf("%d run of a limit of %d", running, w.quorate.limit)
	}
}

// settle lets a process run without crashes until nothing changes any more.
func (w *world) settle() {
	w.source.lagging = nil
	w.start(true)
	for range 60 {
		w.pass()
		for m := w.firstStopping(); m != nil; m = w.firstStopping() {
			m.State = Ended
		}
	}
}

func (w *world) firstStopping() *Member {
	for i := range w.source.works {
		for j := range w.source.works[i].Members {
			if w.source.works[i].Members[j].State == Stopping {
				return &w.source.works[i].Members[j]
			}
		}
	}
	return nil
}

// checkSettled checks that what runs is held, that each work that can has a request, and that the queue is not stuck.
func (w *world) checkSettled() {
	if running := w.source.running(""); running > w.quorate.held() || w.quorate.held() > w.quorate.limit {
		w.Fatalf("%d run, %d held, limit %d", running, w.quorate.held(), w.quorate.limit)
	}
	seen := map[string]int{}
	for _, a := range w.quorate.records {
		if key, _, _ := parseID("p", a.GetId()); rank(a) != endedRank {
			seen[key]++
		}
	}
	for _, work := range w.source.works {
		denied := w.source.statuses[work.Key].Kind == StatusDenied
		switch active := work.count(Closed, Open, Stopping) > 0; {
		case !active && seen[work.Key] > 0, seen[work.Key] > 1:
			w.Fatalf("%s has %d allocations: %+v", work.Key, seen[work.Key], work)
		case active && work.isComplete() && seen[work.Key] == 0 && !denied:
			w.Fatalf("%s has no request and was told %v: %+v", work.Key, w.source.statuses[work.Key], work)
		}
		if free := w.quorate.heldFor(work.Key) - w.source.running(work.Key); free >= 5 && work.count(Closed) > 0 {
			w.Fatalf("%s stays closed although %d of its grant are free: %+v", work.Key, free, work)
		}
		delete(seen, work.Key)
	}
	if len(seen) > 0 {
		w.Fatalf("allocations without work: %v", seen)
	}
}

// TestCrashesAnywhere kills the process between any two calls, again and again, while work comes and goes.
func TestCrashesAnywhere(t *testing.T) {
	verify.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		r.Repeat(w.actions())
		w.settle()
		w.checkSettled()
		for m := w.anyMember(Closed, Open, Stopping); m != nil; m = w.anyMember(Closed, Open, Stopping) {
			m.State = Ended
		}
		w.settle()
		if held, waiting := w.quorate.held(), len(w.quorate.waiting()); held != 0 || waiting != 0 {
			r.Fatalf("everything has ended, and %d are held and %d wait", held, waiting)
		}
	})
}
