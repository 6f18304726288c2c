package load

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// lateAfter is how long after its intended start an iteration of an open loop may begin without counting as late.
const lateAfter = time.Millisecond

type start struct {
	number   int64
	intended time.Time
	delay    time.Duration // from the intended to the actual start
	isOpen   bool
	counts   bool // after the warm-up
}

// schedule decides when iterations begin. In an open loop one caller at a time holds the token and waits for the next
// intended start: so starts are in order, and only one goroutine needs a precise sleep, which occupies a thread. A
// closed loop needs no token, which would cost more than the fastest operations that are measured.
type schedule struct {
	rate  float64
	limit int64 // of measured iterations; 0 is none

	warmup, duration time.Duration
	began            time.Time
	measureFrom      time.Time
	end              time.Time // zero without a duration
	hasBegun         atomic.Bool

	next    atomic.Int64
	counted atomic.Int64 // measured iterations; may exceed the limit by one for each caller
	token   chan struct{}
	ended   chan struct{} // closed when no further iteration begins
	close   sync.Once
	// stoppedAt is when the run stopped; set before ended is closed.
	stoppedAt time.Time
	lastEnd   atomic.Int64 // of a measured iteration, since measureFrom
}

func newSchedule(c Config) *schedule {
	return &schedule{
		rate: c.Rate, limit: c.Count, warmup: c.Warmup, duration: c.Duration,
		token: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

func (s *schedule) begin(now time.Time) {
	s.began, s.measureFrom = now, now.Add(s.warmup)
	if s.duration > 0 {
		s.end = s.measureFrom.Add(s.duration)
	}
	s.hasBegun.Store(true)
	s.token <- struct{}{}
}

// awaitStart is false when there is no further start.
func (s *schedule) awaitStart(ctx context.Context) (start, bool) {
	if s.rate == 0 {
		return s.startClosed(ctx)
	}
	select {
	case <-s.token:
	case <-s.ended:
		return start{}, false
	}
	next, more := s.startOpen(ctx)
	if more { // else no caller gets the token any more
		s.token <- struct{}{}
	}
	return next, more
}

func (s *schedule) startClosed(ctx context.Context) (start, bool) {
	now := time.Now()
	if ctx.Err() != nil || s.isOver(now) {
		return s.stop(now)
	}
	counts := !now.Before(s.measureFrom)
	if counts && !s.countStart() {
		return s.stop(now)
	}
	return start{number: s.next.Add(1) - 1, intended: now, counts: counts}, true
}

func (s *schedule) startOpen(ctx context.Context) (start, bool) {
	intended := s.intendedStart(s.next.Load())
	if s.isOver(intended) {
		return s.stop(s.end)
	}
	if !sleepUntil(ctx, intended) {
		return s.stop(time.Now())
	}
	now := time.Now()
	counts := !intended.Before(s.measureFrom)
	if ctx.Err() != nil || s.isOver(now) || counts && !s.countStart() {
		return s.stop(now)
	}
	return start{
		number: s.next.Add(1) - 1, intended: intended, delay: now.Sub(intended), isOpen: true, counts: counts,
	}, true
}

func (s *schedule) countStart() bool {
	n := s.counted.Add(1)
	return s.limit == 0 || n <= s.limit
}

func (s *schedule) stop(now time.Time) (start, bool) {
	s.close.Do(func() {
		s.stoppedAt = now
		close(s.ended)
	})
	return start{}, false
}

func (s *schedule) started() int64 {
	if n := s.counted.Load(); s.limit == 0 || n < s.limit {
		return n
	}
	return s.limit
}

func (s *schedule) isOver(at time.Time) bool { return !s.end.IsZero() && !at.Before(s.end) }

// intendedStart of an open loop is computed from the number, so that rounding errors do not add up.
func (s *schedule) intendedStart(number int64) time.Time {
	return s.began.Add(s.offset(number))
}

func (s *schedule) offset(number int64) time.Duration {
	return time.Duration(float64(number) * float64(time.Second) / s.rate)
}

func (s *schedule) dueBefore(since time.Duration) int64 {
	n := max(int64(math.Floor(since.Seconds()*s.rate))-1, 0)
	for s.offset(n) < since {
		n++
	}
	return n
}

// scheduled counts the measured iterations that were due before the run stopped. Call it after the run.
func (s *schedule) scheduled() int64 {
	if s.rate == 0 {
		return s.started()
	}
	until := s.stoppedAt
	if s.isOver(until) {
		until = s.end
	}
	due := s.dueBefore(until.Sub(s.began)) - s.dueBefore(s.warmup)
	if s.limit > 0 {
		due = min(due, s.limit)
	}
	// The last start may be at the very instant of the stop, and is then not due before it.
	return max(due, s.started())
}

// elapsed is the time from the end of the warm-up until the run stopped and its last measured iteration had ended. Call
// it after the run.
func (s *schedule) elapsed() time.Duration {
	stopped := s.stoppedAt
	if s.isOver(stopped) {
		stopped = s.end
	}
	return max(time.Duration(s.lastEnd.Load()), stopped.Sub(s.measureFrom), 0)
}

// sinceMeasured is the time since the end of the warm-up, negative before it and before the run.
func (s *schedule) sinceMeasured(now time.Time) time.Duration {
	if !s.hasBegun.Load() {
		return -1
	}
	return now.Sub(s.measureFrom)
}

func (s *schedule) noteEnd(now time.Time) {
	since := int64(s.sinceMeasured(now))
	for last := s.lastEnd.Load(); since > last && !s.lastEnd.CompareAndSwap(last, since); {
		last = s.lastEnd.Load()
	}
}
