package explain

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// blockerSearch finds who is in the way of some requests. It looks at the held allocations once for all of them, and
// at no more of the newest than a search for releases.
type blockerSearch struct {
	reader read.Reader
	Levels []*levelTotals
	known  map[quota.Violation]*levelTotals // by violations without numbers
}

func NewBlockerSearch(r read.Reader) *blockerSearch {
	return &blockerSearch{reader: r, known: map[quota.Violation]*levelTotals{}}
}

// BlockedRequest is a request that waits, or might.
type BlockedRequest struct {
	id         string // of the allocation, if it has one
	Turn       rankqueue.Rank
	violations []quota.Violation
}

// NewRequest is a request that is not in the queue.
func NewRequest(r *quota.Allocate, violations []quota.Violation) BlockedRequest {
	return BlockedRequest{Turn: rankqueue.Rank{Priority: r.Priority, Arrival: 1<<64 - 1}, violations: violations}
}

// BlockedWaiter is the request with what is in its way. Its alternatives have the turn of the first.
func BlockedWaiter(w *state.Waiter, violations []quota.Violation) BlockedRequest {
	return BlockedRequest{id: w.Record.ID(), Turn: w.Turn, violations: violations}
}

// BlockersOf are who is in the way of one request.
func BlockersOf(r read.Reader, blocked BlockedRequest) []quota.LevelHolders {
	s := NewBlockerSearch(r)
	s.AddLevels(blocked.violations)
	s.FindHolders()
	return s.BlockersOf(blocked)
}

// DenialHolders are who is in the way now at the limits that the last denied request of an id exceeded, as far as the
// caller sees them: at most MaxDenialHolders of each kind for each limit. There are none if the denial is not
// remembered, or is not the caller's to see. It visits at most 10,000 allocations.
func DenialHolders(r read.Reader, id string) []quota.LevelHolders {
	for _, e := range slices.Backward(read.StateOf(r).Journal.Events) {
		if e.Kind != quota.EventDenied || e.ID != id || !r.SeesEvent(e) {
			continue
		}
		list := BlockersOf(r, NewRequest(e.Request, e.Decision.Violations))
		for i := range list {
			list[i] = list[i].Largest(quota.MaxDenialHolders)
		}
		if read.IdentityOf(r) != nil {
			list = r.ShownHolders(list)
		}
		return list
	}
	return nil
}

// levelOf identifies the limit of a violation.
func levelOf(v quota.Violation) quota.Violation {
	return quota.Violation{
		Tree: v.Tree, Node: v.Node, Resource: v.Resource, Kind: v.Kind, Holder: v.Holder, Item: v.Item,
	}
}

// AddLevels notes the limits whose holders are to be found.
func (s *blockerSearch) AddLevels(violations []quota.Violation) {
	for _, v := range violations[:min(len(violations), state.MaxEventViolations)] {
		level := levelOf(v)
		if !read.HasHolders(v.Kind) || s.known[level] != nil {
			continue
		}
		totals := &levelTotals{violation: level, groups: map[quota.HolderGroup]*quota.HolderGroup{}}
		s.known[level], s.Levels = totals, append(s.Levels, totals)
	}
}

// FindHolders adds up what the newest allocations hold of the noted limits.
func (s *blockerSearch) FindHolders() {
	if len(s.Levels) == 0 {
		return
	}
	looked := 0
	for _, a := range read.StateOf(s.reader).Allocations.Held.Backward() {
		if looked++; looked > read.Scanned {
			break
		}
		h := &seenHolder{Allocation: a, search: s}
		for _, level := range s.Levels {
			level.add(h)
		}
	}
	for _, level := range s.Levels {
		level.addApplications()
	}
}

// BlockersOf are who is in the way of one request, whose limits were noted.
func (s *blockerSearch) BlockersOf(r BlockedRequest) []quota.LevelHolders {
	violations := r.violations[:min(len(r.violations), state.MaxEventViolations)]
	counted := map[*state.BlockerQueue]bool{} // by a violation of their own
	for _, v := range violations {
		if v.Kind == quota.OfQueue {
			counted[queueOf(&read.StateOf(s.reader).Forest, v)] = true
		}
	}
	var list []quota.LevelHolders
	for _, v := range violations {
		level := quota.LevelHolders{
			Tree: v.Tree, Node: v.Node, Resource: v.Resource, Kind: v.Kind, Holder: v.Holder, Item: v.Item,
			Alternative: v.Alternative,
		}
		if read.HasHolders(v.Kind) {
			s.known[levelOf(v)].addTo(&level, v.Used, r.id)
		}
		if bq := queueOf(&read.StateOf(s.reader).Forest, v); bq != nil && (v.Kind == quota.OfQueue || !counted[bq]) {
			s.addAhead(&level, bq, v, r.Turn)
		}
		if read.HasHolders(v.Kind) || len(level.Ahead)+level.OtherAhead > 0 {
			list = append(list, level)
		}
	}
	return list
}
