package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// blockerSearch finds who is in the way of some requests. It looks at the held allocations once for all of them, and
// at no more of the newest than a search for releases.
type blockerSearch struct {
	reader Reader
	levels []*levelTotals
	known  map[quota.Violation]*levelTotals // by violations without numbers
}

func newBlockerSearch(r Reader) *blockerSearch {
	return &blockerSearch{reader: r, known: map[quota.Violation]*levelTotals{}}
}

// blockedRequest is a request that waits, or might.
type blockedRequest struct {
	id         string // of the allocation, if it has one
	turn       rankqueue.Rank
	violations []quota.Violation
}

// newRequest is a request that is not in the queue.
func newRequest(r *quota.Allocate, violations []quota.Violation) blockedRequest {
	return blockedRequest{turn: rankqueue.Rank{Priority: r.Priority, Arrival: 1<<64 - 1}, violations: violations}
}

// blockedWaiter is the request with what is in its way. Its alternatives have the turn of the first.
func blockedWaiter(w *waiter, violations []quota.Violation) blockedRequest {
	return blockedRequest{id: w.record.id, turn: w.turn, violations: violations}
}

// blockersOf are who is in the way of one request.
func blockersOf(r Reader, blocked blockedRequest) []quota.LevelHolders {
	s := newBlockerSearch(r)
	s.addLevels(blocked.violations)
	s.findHolders()
	return s.blockersOf(blocked)
}

// DenialHolders are who is in the way now at the limits that the last denied request of an id exceeded, as far as the
// caller sees them: at most MaxDenialHolders of each kind for each limit. There are none if the denial is not
// remembered, or is not the caller's to see. It visits at most 10,000 allocations.
func (r Reader) DenialHolders(id string) []quota.LevelHolders {
	for _, e := range slices.Backward(r.ledger.journal.events) {
		if e.Kind != quota.EventDenied || e.ID != id || !r.seesEvent(e) {
			continue
		}
		list := blockersOf(r, newRequest(e.Request, e.Decision.Violations))
		for i := range list {
			list[i] = list[i].Largest(quota.MaxDenialHolders)
		}
		if r.id != nil {
			list = r.shownHolders(list)
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

// addLevels notes the limits whose holders are to be found.
func (s *blockerSearch) addLevels(violations []quota.Violation) {
	for _, v := range violations[:min(len(violations), maxEventViolations)] {
		level := levelOf(v)
		if !hasHolders(v.Kind) || s.known[level] != nil {
			continue
		}
		totals := &levelTotals{violation: level, groups: map[quota.HolderGroup]*quota.HolderGroup{}}
		s.known[level], s.levels = totals, append(s.levels, totals)
	}
}

// findHolders adds up what the newest allocations hold of the noted limits.
func (s *blockerSearch) findHolders() {
	if len(s.levels) == 0 {
		return
	}
	looked := 0
	for _, a := range s.reader.ledger.allocations.held.Backward() {
		if looked++; looked > scanned {
			break
		}
		h := &seenHolder{Allocation: a, search: s}
		for _, level := range s.levels {
			level.add(h)
		}
	}
	for _, level := range s.levels {
		level.addApplications()
	}
}

// blockersOf are who is in the way of one request, whose limits were noted.
func (s *blockerSearch) blockersOf(r blockedRequest) []quota.LevelHolders {
	violations := r.violations[:min(len(r.violations), maxEventViolations)]
	counted := map[*blockerQueue]bool{} // by a violation of their own
	for _, v := range violations {
		if v.Kind == quota.OfQueue {
			counted[queueOf(&s.reader.ledger.forest, v)] = true
		}
	}
	var list []quota.LevelHolders
	for _, v := range violations {
		level := quota.LevelHolders{
			Tree: v.Tree, Node: v.Node, Resource: v.Resource, Kind: v.Kind, Holder: v.Holder, Item: v.Item,
			Alternative: v.Alternative,
		}
		if hasHolders(v.Kind) {
			s.known[levelOf(v)].addTo(&level, v.Used, r.id)
		}
		if bq := queueOf(&s.reader.ledger.forest, v); bq != nil && (v.Kind == quota.OfQueue || !counted[bq]) {
			s.addAhead(&level, bq, v, r.turn)
		}
		if hasHolders(v.Kind) || len(level.Ahead)+level.OtherAhead > 0 {
			list = append(list, level)
		}
	}
	return list
}
