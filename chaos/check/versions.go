package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// holdingVersion is what an allocation holds between two changes. The first version is what it was granted.
type holdingVersion struct {
	generation uint64
	claims     []history.Claim
	// parts are what the change makes other allocations of.
	parts []history.Part
	// minIndex and maxIndex bound the index of the change that made this version.
	minIndex, maxIndex uint64
	// certain is false if no answer says whether the change was made.
	certain bool
	// client made the change. askedAt is when its first call was sent, seenAt when the first answer showed it.
	client          int
	askedAt, seenAt int64
}

func (s *timeline) addVersions() {
	for _, l := range s.allocations {
		l.versions = []*holdingVersion{{claims: l.grantedClaims(), certain: true, maxIndex: l.maxGrantIndex}}
		for _, calls := range l.callsByGeneration() {
			if v := newHoldingVersion(calls); v != nil {
				v.minIndex = max(v.minIndex, l.minGrantIndex, s.indexFloors.highestBefore(v.askedAt)+1)
				v.narrowBySight(l)
				s.narrowByParts(v)
				l.versions = append(l.versions, v)
			}
		}
		l.orderVersions()
	}
}

// callsByGeneration has one list for each generation.
func (l *allocationHistory) callsByGeneration() [][]*history.Op {
	slices.SortStableFunc(l.changeCalls, func(a, b *history.Op) int { return cmp.Compare(a.Generation, b.Generation) })
	var all [][]*history.Op
	for i, o := range l.changeCalls {
		if i == 0 || o.Generation != l.changeCalls[i-1].Generation {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], o)
	}
	return all
}

// newHoldingVersion joins all attempts to make one change; nil if it was certainly refused.
func newHoldingVersion(calls []*history.Op) *holdingVersion {
	v := &holdingVersion{
		generation: calls[0].Generation, claims: calls[0].Claims, parts: calls[0].Parts, maxIndex: math.MaxUint64,
		client: calls[0].Client, askedAt: never, seenAt: never,
	}
	refused := 0
	for _, o := range calls {
		v.askedAt = min(v.askedAt, o.Call)
		switch {
		case o.ResizeWaits() && o.Reason != history.Denied: // it may be carried out later than it was answered
		case o.Outcome == history.OK && !o.Repeated:
			v.minIndex = o.Index
		case o.Outcome == history.Refused:
			v.minIndex = max(v.minIndex, o.Index) // another attempt was carried out later, if any
			refused++
		}
	}
	if refused == len(calls) {
		return nil
	}
	return v
}

func (v *holdingVersion) narrowBySight(l *allocationHistory) {
	for _, s := range l.observations {
		switch {
		case !s.isHeld():
		case s.generation < v.generation:
			v.minIndex = max(v.minIndex, s.index)
		default:
			v.maxIndex, v.seenAt = min(v.maxIndex, s.index), min(v.seenAt, s.returned)
			v.certain = v.certain || s.generation == v.generation
		}
	}
	if l.endIndex > 0 { // what has ended is not changed, so the search need not look for the change behind the end
		v.maxIndex = min(v.maxIndex, l.endIndex)
	}
}

// narrowByParts narrows the bounds of a split by the grants of its parts, which are of the same entry.
func (s *timeline) narrowByParts(v *holdingVersion) {
	for _, part := range v.parts {
		if p := s.allocations[part.ID]; p != nil && p.wasGranted() {
			v.certain = true
			v.minIndex, v.maxIndex = max(v.minIndex, p.minGrantIndex), min(v.maxIndex, p.maxGrantIndex)
			v.seenAt = min(v.seenAt, p.grantedAt)
		}
	}
}

// addParts adds a split that may have been made to the allocations that it makes, as the request for them.
func (s *timeline) addParts(o *history.Op) {
	if o.Outcome == history.Failed || o.Outcome == history.Refused {
		return
	}
	for _, part := range o.Parts {
		l := s.allocationOf(part.ID)
		l.splitBy = o
		l.requests = append(l.requests, &history.Op{
			Kind: history.Allocate, ID: part.ID, Claims: part.Claims, Workload: o.Workload, Client: o.Client,
			Call: o.Call, Return: o.Return, Outcome: o.Outcome,
		})
	}
}

// orderVersions narrows the bounds of all changes by those before and after them, and removes changes that cannot have
// been made.
func (l *allocationHistory) orderVersions() {
	from := uint64(0)
	for _, v := range l.versions {
		if v.minIndex = max(v.minIndex, from); v.certain {
			from = v.minIndex
		}
	}
	latest := uint64(math.MaxUint64)
	for _, v := range slices.Backward(l.versions) {
		if v.maxIndex = min(v.maxIndex, latest); v.certain {
			latest = v.maxIndex
		}
	}
	l.versions = slices.DeleteFunc(l.versions, func(v *holdingVersion) bool {
		return !v.certain && v.minIndex > v.maxIndex
	})
}

func (l *allocationHistory) versionsBetween(from, to uint64) []*holdingVersion {
	var all []*holdingVersion
	for i, v := range l.versions {
		replaced := slices.ContainsFunc(l.versions[i+1:], func(later *holdingVersion) bool {
			return later.certain && later.maxIndex < from
		})
		if v.minIndex <= to && !replaced {
			all = append(all, v)
		}
	}
	return all
}

// leastHeld returns what the allocation certainly holds at a node at every index between two at which it is held.
func (l *allocationHistory) leastHeld(at limitKey, from, to uint64) int64 {
	least := int64(math.MaxInt64)
	for _, v := range l.versionsBetween(from, to) {
		least = min(least, amountAt(v.claims, at))
	}
	if least == math.MaxInt64 {
		return 0 // its bounds contradict each other, which checkAllOrNothing reports
	}
	return least
}
