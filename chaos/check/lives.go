package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

const never = math.MaxInt64

// sighting is what one answer showed of an allocation at an index.
type sighting struct {
	index   uint64
	within  uint32
	state   string
	fence   uint64
	claims  []history.Claim
	expires int64
	// call and back are when it was asked for and seen.
	call, back int64
	// first is true if the answer is of the entry that brought the allocation into this state.
	first bool
	op    *history.Op
}

func (s sighting) holds() bool { return s.state == history.Held || s.state == history.Reserved }

func (s sighting) ended() bool { return !s.holds() && s.state != history.Waiting && s.state != "" }

// life is everything that a history says of one allocation.
type life struct {
	id        string
	asks      []*history.Op // Allocate
	ends      []*history.Op // Release and Cancel that may have been carried out
	renews    []*history.Op
	sightings []sighting // by index
	// restored ones lived again after they had ended, as the API allows.
	restored bool

	fence uint64
	// grant is the index of the grant; from and by bound it if it is not known, that is if grant is 0.
	grant, from, by uint64
	// waited is the highest index at which it waited for certain.
	waited uint64
	// until is the highest index at which it was held for certain.
	until uint64
	// end is the index of its end, if known; over is the lowest index at which it had ended for certain.
	end, over uint64
	// asked is when it was first asked for, granted when the first answer said so, gone when the first said that it is over.
	asked, granted, gone int64
	// given is when somebody first tried to end it.
	given int64
}

func (l *life) ask() *history.Op { return l.asks[0] }

// leased tells whether it may end by itself.
func (l *life) leased() bool { return l.ask().TTL > 0 }

// happened tells whether it was granted for certain.
func (l *life) happened() bool { return l.fence > 0 }

// story is a history in the order of lives.
type story struct {
	ops    []history.Op
	finals Finals
	lives  map[string]*life
	// byFence are those that were granted, in the order of their fences.
	byFence []*life
	floors  floors
	changes []change
	limits  settings
}

func tell(h history.History, f Finals) *story {
	s := &story{ops: h.Ops, finals: f, lives: map[string]*life{}, floors: floorsOf(h.Ops)}
	for i := range s.ops {
		s.take(&s.ops[i])
	}
	for _, state := range f.States {
		for _, r := range slices.Concat(state.Held, state.Waiting) {
			s.see(r, sighting{index: state.Index, call: never, back: never})
		}
	}
	for id, l := range s.lives {
		if len(l.asks) == 0 {
			delete(s.lives, id) // nobody of this history asked for it
			continue
		}
		l.sum()
		if l.happened() {
			s.byFence = append(s.byFence, l)
		}
	}
	slices.SortFunc(s.byFence, func(a, b *life) int { return cmp.Compare(a.fence, b.fence) })
	s.bound()
	s.changes = changesOf(s.ops, s.floors)
	s.limits = settingsOf(s.changes)
	return s
}

func (s *story) life(id string) *life {
	if s.lives[id] == nil {
		s.lives[id] = &life{id: id, asked: never, granted: never, gone: never, given: never}
	}
	return s.lives[id]
}

// take adds one operation.
func (s *story) take(o *history.Op) {
	for _, r := range o.Records {
		s.see(r, sighting{index: o.Index, call: o.Call, back: o.Return, op: o})
	}
	if o.ID == "" || o.Kind == history.Take || o.Kind == history.Give || o.Kind == history.Keep || o.Kind == history.Configure {
		return
	}
	l := s.life(o.ID)
	if o.Outcome != history.Failed {
		l.keep(o)
	}
	if o.Outcome == history.Refused && o.Reason == "ENDED" {
		l.gone = min(l.gone, o.Return)
	}
	if o.State == "" {
		return
	}
	l.restored = l.restored || o.Change == "RESTORED"
	l.sightings = append(l.sightings, sighting{
		index: o.Index, within: o.Within, state: o.State, fence: o.Fence, claims: o.Got, expires: o.Expires, call: o.Call, back: o.Return,
		first: first(o), op: o,
	})
}

// keep notes a call that may have been carried out; what others did is told by what was seen.
func (l *life) keep(o *history.Op) {
	if o.Kind == history.Allocate {
		l.asks = append(l.asks, o)
	}
	if o.Kind == history.Renew {
		l.renews = append(l.renews, o)
	}
	if endsIt(o) {
		l.ends = append(l.ends, o)
	}
}

func endsIt(o *history.Op) bool { return o.Kind == history.Release || o.Kind == history.Cancel }

// first tells whether an answer is of the very entry that made it so. An answer that was waited for may be of a later one.
func first(o *history.Op) bool {
	if o.Kind == history.Change {
		return o.Change == "GRANTED" || o.Change == "ENDED"
	}
	return !o.Repeated && (o.Kind == history.Allocate && o.Mode != history.Wait || endsIt(o))
}

func (s *story) see(r history.Record, at sighting) {
	at.state, at.fence, at.claims, at.expires = r.State, r.Fence, r.Claims, r.Expires
	l := s.life(r.ID)
	l.sightings = append(l.sightings, at)
}

// sum draws what follows from the single sightings.
func (l *life) sum() {
	slices.SortStableFunc(l.sightings, func(a, b sighting) int { return cmp.Compare(a.index, b.index) })
	for _, o := range l.asks {
		l.asked = min(l.asked, o.Call)
	}
	for _, o := range l.ends {
		if o.Outcome != history.Refused {
			l.given = min(l.given, o.Call)
		}
	}
	for _, s := range l.sightings {
		if s.fence > 0 && l.fence == 0 {
			l.fence = s.fence
		}
		if s.fence > 0 {
			l.granted = min(l.granted, s.back)
		}
		switch {
		case s.state == history.Waiting:
			l.waited = max(l.waited, s.index)
		case s.holds():
			l.until = max(l.until, s.index)
			l.by = least(l.by, s.index)
			if s.first {
				l.grant = least(l.grant, s.index)
			}
		case s.ended():
			l.over, l.gone = least(l.over, s.index), min(l.gone, s.back)
			if s.fence > 0 {
				l.by = least(l.by, s.index)
			}
			if s.first {
				l.end = least(l.end, s.index)
			}
		}
	}
	if l.end > 0 && l.happened() {
		l.until = max(l.until, l.end) // held up to the entry that ended it
	}
}

// least is the smaller one, where 0 is none.
func least(a, b uint64) uint64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// bound narrows the indexes of grants that nobody was told: fences are given in the order of the log.
func (s *story) bound() {
	from := uint64(0)
	for _, l := range s.byFence {
		l.from = max(from, l.grant, s.floors.before(l.asked)+1, l.waited+1)
		from = l.from
	}
	by := uint64(math.MaxUint64)
	for _, l := range slices.Backward(s.byFence) {
		if l.grant > 0 {
			l.by = l.grant
		}
		l.by = min(l.by, by)
		by = l.by
		l.from = min(l.from, l.by) // where the fences are out of order, P5 says so
	}
}
