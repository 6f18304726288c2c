package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// never is the time and the index of what was not seen.
const never = math.MaxInt64

// observation is what one answer shows of an allocation at an index.
type observation struct {
	index    uint64
	position uint32
	state    string
	fence    uint64
	claims   []history.Claim
	expires  int64
	// generation is that of the last change of what is held, and alternative the number of the one that was granted.
	generation  uint64
	alternative int
	// called and returned are the times of the call.
	called, returned int64
	// decisive is true if the answer is of the very entry that brought the allocation into this state.
	decisive bool
	op       *history.Op
}

func (s observation) isHeld() bool { return s.state == history.Held || s.state == history.Reserved }

func (s observation) isEnded() bool {
	return !s.isHeld() && s.state != history.Waiting && s.state != ""
}

// allocationHistory is the part of a history that concerns one allocation.
type allocationHistory struct {
	id           string
	requests     []*history.Op // Allocate
	endCalls     []*history.Op // Release and Cancel that may have been carried out
	renewCalls   []*history.Op
	changeCalls  []*history.Op // Resize, Transfer and Split
	observations []observation // by index
	// splitBy is the call that made the allocation, if it is a part of another one; it is the first request too.
	splitBy *history.Op
	// versions is what it holds from its grant on, and after each change.
	versions []*holdingVersion
	// restored is true if the allocation was held again after it had ended, as the API allows.
	restored bool

	fence uint64
	// grantIndex is the index of the grant, 0 if unknown. minGrantIndex and maxGrantIndex bound it.
	grantIndex, minGrantIndex, maxGrantIndex uint64
	// waitedIndex is the highest index at which the request certainly waited.
	waitedIndex uint64
	// heldIndex is the highest index at which the allocation was certainly held.
	heldIndex uint64
	// endIndex is the index of the end, 0 if unknown; endedIndex the lowest index at which the allocation had
	// certainly ended.
	endIndex, endedIndex uint64
	// askedAt is when the first request was sent, grantedAt when the first answer showed the grant, goneAt when the
	// first answer showed the end.
	askedAt, grantedAt, goneAt int64
	// endAskedAt is when a client first tried to end the allocation.
	endAskedAt int64
}

func (l *allocationHistory) firstRequest() *history.Op { return l.requests[0] }

// endsByItself reports whether the allocation may expire: it is a lease or a reservation, or has declared its end.
func (l *allocationHistory) endsByItself() bool {
	return l.firstRequest().TTL > 0 || l.firstRequest().For > 0
}

// mayWait reports whether the request, or a resize, may be granted later than it is answered.
func (l *allocationHistory) mayWait() bool {
	return l.firstRequest().Mode == history.Wait || slices.ContainsFunc(l.changeCalls, (*history.Op).ResizeWaits)
}

// wasGranted reports whether the allocation was certainly granted.
func (l *allocationHistory) wasGranted() bool { return l.fence > 0 }

// timeline is a history arranged by allocation and by log index.
type timeline struct {
	ops         []history.Op
	finals      Finals
	allocations map[string]*allocationHistory
	// byFence are the granted allocations in the order of their fences.
	byFence     []*allocationHistory
	indexFloors indexFloors
	changes     []limitChange
	limits      limitHistory
	// scheduleViews are what answers show of scheduled limits, by index, and windows those limits.
	scheduleViews []scheduleView
	windows       []*scheduledWindow
}

func newTimeline(h history.History, f Finals) *timeline {
	s := &timeline{
		ops: h.Ops, finals: f, allocations: map[string]*allocationHistory{},
		indexFloors: newIndexFloors(h.Ops),
	}
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
			delete(s.allocations, id) // no call of this history requested it
			continue
		}
		l.summarize()
		if l.wasGranted() {
			s.byFence = append(s.byFence, l)
		}
	}
	slices.SortFunc(s.byFence, func(a, b *allocationHistory) int { return cmp.Compare(a.fence, b.fence) })
	s.boundGrantIndexes()
	s.addVersions()
	s.changes = changesOf(s.ops, s.indexFloors)
	s.scheduleViews = scheduleViews(s.ops, f)
	s.windows = windowsOf(s.ops, s.scheduleViews)
	s.changes = append(s.changes, s.scheduledChanges()...)
	s.limits = newLimitHistory(s.changes)
	return s
}

func (s *timeline) allocationOf(id string) *allocationHistory {
	if s.allocations[id] == nil {
		s.allocations[id] = &allocationHistory{
			id: id, askedAt: never, grantedAt: never, goneAt: never,
			endAskedAt: never,
		}
	}
	return s.allocations[id]
}

func (s *timeline) addOp(o *history.Op) {
	for i, r := range o.Records {
		at := observation{index: o.Index, called: o.Call, returned: o.Return, op: o}
		at.decisive = i > 0 && o.Kind == history.Split && !o.Repeated // the grant of a part
		s.addRecord(r, at)
	}
	s.addParts(o)
	if o.ID == "" || slices.Contains(otherIDs, o.Kind) {
		return
	}
	l := s.allocationOf(o.ID)
	if o.Outcome != history.Failed {
		l.addCall(o)
	}
	if o.Outcome == history.Refused && o.Reason == "ENDED" && !mayBeOfAnother(o) {
		l.goneAt = min(l.goneAt, o.Return)
	}
	if o.State == "" {
		return
	}
	l.restored = l.restored || o.Change == "RESTORED"
	l.observations = append(l.observations, observation{
		index: o.Index, position: o.Position, state: o.State, fence: o.Fence, claims: o.Granted, expires: o.Expires,
		generation: o.Generation, alternative: o.Alternative, called: o.Call, returned: o.Return,
		decisive: isDecisive(o), op: o,
	})
}

// mayBeOfAnother reports whether the reason of a refusal may be that something else has ended: a part of a split, or a
// resize that waited.
func mayBeOfAnother(o *history.Op) bool { return o.Kind == history.Split || o.ResizeWaits() }

// otherIDs are the kinds of operations whose id is not that of an allocation.
var otherIDs = []history.Kind{
	history.BoskosAcquire, history.BoskosRelease, history.BoskosUpdate, history.Configure, history.Schedule,
}

// addCall takes calls that may have been carried out.
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
	if o.ChangesHolding() {
		l.changeCalls = append(l.changeCalls, o)
	}
}

func endsIt(o *history.Op) bool { return o.Kind == history.Release || o.Kind == history.Cancel }

// isDecisive reports whether an answer is of the very entry that brought the allocation into the state that it shows.
// The answer to a waiting request may be of a later entry.
func isDecisive(o *history.Op) bool {
	if o.Kind == history.Change {
		return o.Change == "GRANTED" || o.Change == "ENDED"
	}
	return !o.Repeated && (o.Kind == history.Allocate && o.Mode != history.Wait || endsIt(o))
}

func (s *timeline) addRecord(r history.Record, at observation) {
	at.state, at.fence, at.claims, at.expires, at.generation = r.State, r.Fence, r.Claims, r.Expires, r.Generation
	at.alternative = r.Alternative
	l := s.allocationOf(r.ID)
	l.observations = append(l.observations, at)
}

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
		l.heldIndex = max(l.heldIndex, l.endIndex) // it was held up to the entry that ended it
	}
}

// minNonZero takes 0 as no number.
func minNonZero(a, b uint64) uint64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// boundGrantIndexes bounds the indexes of grants that no answer told: fences are assigned in the order of the log.
func (s *timeline) boundGrantIndexes() {
	from := uint64(0)
	for _, l := range s.byFence {
		l.minGrantIndex = max(from, l.grantIndex, s.indexFloors.highestBefore(l.askedAt)+1, l.waitedIndex+1)
		from = l.minGrantIndex
	}
	latest := uint64(math.MaxUint64)
	for _, l := range slices.Backward(s.byFence) {
		if l.grantIndex > 0 {
			l.maxGrantIndex = l.grantIndex
		}
		l.maxGrantIndex = min(l.maxGrantIndex, latest)
		latest = l.maxGrantIndex
		l.minGrantIndex = min(l.minGrantIndex, l.maxGrantIndex) // if fences are out of order, checkFenced reports it
	}
}
