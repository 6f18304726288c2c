package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

const never = math.MaxInt64

// observation is what one answer showed of an allocation at an index.
type observation struct {
	index    uint64
	position uint32
	state    string
	fence    uint64
	claims   []history.Claim
	expires  int64
	// called and back are when it was asked for and seen.
	called, returned int64
	// decisive is true if the answer is of the entry that brought the allocation into this state.
	decisive bool
	op       *history.Op
}

func (s observation) isHeld() bool { return s.state == history.Held || s.state == history.Reserved }

func (s observation) isEnded() bool {
	return !s.isHeld() && s.state != history.Waiting && s.state != ""
}

// allocationHistory is everything that a history says of one allocation.
type allocationHistory struct {
	id           string
	requests     []*history.Op // Allocate
	endCalls     []*history.Op // Release and Cancel that may have been carried out
	renewCalls   []*history.Op
	observations []observation // by index
	// restored ones lived again after they had ended, as the API allows.
	restored bool

	fence uint64
	// grantIndex is the index of the grant; from and by bound it if it is not known, that is if grant is 0.
	grantIndex, minGrantIndex, maxGrantIndex uint64
	// waitedIndex is the highest index at which it waited for certain.
	waitedIndex uint64
	// heldIndex is the highest index at which it was held for certain.
	heldIndex uint64
	// endIndex is the index of its end, if known; over is the lowest index at which it had ended for certain.
	endIndex, endedIndex uint64
	// askedAt is when it was first asked for, granted when the first answer said so, gone when the first said that it is over.
	askedAt, grantedAt, goneAt int64
	// endAskedAt is when somebody first tried to end it.
	endAskedAt int64
}

func (l *allocationHistory) firstRequest() *history.Op { return l.requests[0] }

// isLeased tells whether it may end by itself.
func (l *allocationHistory) isLeased() bool { return l.firstRequest().TTL > 0 }

// wasGranted tells whether it was granted for certain.
func (l *allocationHistory) wasGranted() bool { return l.fence > 0 }

// timeline is a history in the order of lives.
type timeline struct {
	ops         []history.Op
	finals      Finals
	allocations map[string]*allocationHistory
	// byFence are those that were granted, in the order of their fences.
	byFence     []*allocationHistory
	indexFloors indexFloors
	changes     []limitChange
	limits      limitHistory
}

func newTimeline(h history.History, f Finals) *timeline {
	s := &timeline{ops: h.Ops, finals: f, allocations: map[string]*allocationHistory{}, indexFloors: newIndexFloors(h.Ops)}
	for i := range s.ops {
		s.addOp(&s.ops[i])
	}
	for _, state := range f.States {
		for _, r := range slices.Concat(state.Held, state.Waiting) {
			s.addRecord(r, observation{index: state.Index, called: never, returned: never})
		}
	}
	for id, l := range s.allocations {
		if len(l.requests) == 0 {
			delete(s.allocations, id) // nobody of this history asked for it
			continue
		}
		l.summarize()
		if l.wasGranted() {
			s.byFence = append(s.byFence, l)
		}
	}
	slices.SortFunc(s.byFence, func(a, b *allocationHistory) int { return cmp.Compare(a.fence, b.fence) })
	s.boundGrantIndexes()
	s.changes = changesOf(s.ops, s.indexFloors)
	s.limits = newLimitHistory(s.changes)
	return s
}

func (s *timeline) allocationOf(id string) *allocationHistory {
	if s.allocations[id] == nil {
		s.allocations[id] = &allocationHistory{id: id, askedAt: never, grantedAt: never, goneAt: never, endAskedAt: never}
	}
	return s.allocations[id]
}

// addOp adds one operation.
func (s *timeline) addOp(o *history.Op) {
	for _, r := range o.Records {
		s.addRecord(r, observation{index: o.Index, called: o.Call, returned: o.Return, op: o})
	}
	if o.ID == "" || o.Kind == history.BoskosAcquire || o.Kind == history.BoskosRelease || o.Kind == history.BoskosUpdate || o.Kind == history.Configure {
		return
	}
	l := s.allocationOf(o.ID)
	if o.Outcome != history.Failed {
		l.addCall(o)
	}
	if o.Outcome == history.Refused && o.Reason == "ENDED" {
		l.goneAt = min(l.goneAt, o.Return)
	}
	if o.State == "" {
		return
	}
	l.restored = l.restored || o.Change == "RESTORED"
	l.observations = append(l.observations, observation{
		index: o.Index, position: o.Position, state: o.State, fence: o.Fence, claims: o.Granted, expires: o.Expires, called: o.Call, returned: o.Return,
		decisive: isDecisive(o), op: o,
	})
}

// addCall notes a call that may have been carried out; what others did is told by what was seen.
func (l *allocationHistory) addCall(o *history.Op) {
	if o.Kind == history.Allocate {
		l.requests = append(l.requests, o)
	}
	if o.Kind == history.Renew {
		l.renewCalls = append(l.renewCalls, o)
	}
	if endsIt(o) {
		l.endCalls = append(l.endCalls, o)
	}
}

func endsIt(o *history.Op) bool { return o.Kind == history.Release || o.Kind == history.Cancel }

// isDecisive tells whether an answer is of the very entry that made it so. An answer that was waited for may be of a later one.
func isDecisive(o *history.Op) bool {
	if o.Kind == history.Change {
		return o.Change == "GRANTED" || o.Change == "ENDED"
	}
	return !o.Repeated && (o.Kind == history.Allocate && o.Mode != history.Wait || endsIt(o))
}

func (s *timeline) addRecord(r history.Record, at observation) {
	at.state, at.fence, at.claims, at.expires = r.State, r.Fence, r.Claims, r.Expires
	l := s.allocationOf(r.ID)
	l.observations = append(l.observations, at)
}

// summarize draws what follows from the single sightings.
func (l *allocationHistory) summarize() {
	slices.SortStableFunc(l.observations, func(a, b observation) int { return cmp.Compare(a.index, b.index) })
	for _, o := range l.requests {
		l.askedAt = min(l.askedAt, o.Call)
	}
	for _, o := range l.endCalls {
		if o.Outcome != history.Refused {
			l.endAskedAt = min(l.endAskedAt, o.Call)
		}
	}
	for _, s := range l.observations {
		if s.fence > 0 && l.fence == 0 {
			l.fence = s.fence
		}
		if s.fence > 0 {
			l.grantedAt = min(l.grantedAt, s.returned)
		}
		switch {
		case s.state == history.Waiting:
			l.waitedIndex = max(l.waitedIndex, s.index)
		case s.isHeld():
			l.heldIndex = max(l.heldIndex, s.index)
			l.maxGrantIndex = minNonZero(l.maxGrantIndex, s.index)
			if s.decisive {
				l.grantIndex = minNonZero(l.grantIndex, s.index)
			}
		case s.isEnded():
			l.endedIndex, l.goneAt = minNonZero(l.endedIndex, s.index), min(l.goneAt, s.returned)
			if s.fence > 0 {
				l.maxGrantIndex = minNonZero(l.maxGrantIndex, s.index)
			}
			if s.decisive {
				l.endIndex = minNonZero(l.endIndex, s.index)
			}
		}
	}
	if l.endIndex > 0 && l.wasGranted() {
		l.heldIndex = max(l.heldIndex, l.endIndex) // held up to the entry that ended it
	}
}

// minNonZero is the smaller one, where 0 is none.
func minNonZero(a, b uint64) uint64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// boundGrantIndexes narrows the indexes of grants that nobody was told: fences are given in the order of the log.
func (s *timeline) boundGrantIndexes() {
	from := uint64(0)
	for _, l := range s.byFence {
		l.minGrantIndex = max(from, l.grantIndex, s.indexFloors.highestBefore(l.askedAt)+1, l.waitedIndex+1)
		from = l.minGrantIndex
	}
	by := uint64(math.MaxUint64)
	for _, l := range slices.Backward(s.byFence) {
		if l.grantIndex > 0 {
			l.maxGrantIndex = l.grantIndex
		}
		l.maxGrantIndex = min(l.maxGrantIndex, by)
		by = l.maxGrantIndex
		l.minGrantIndex = min(l.minGrantIndex, l.maxGrantIndex) // where the fences are out of order, P5 says so
	}
}
