package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// userDenials are the denials of one user among the events.
type userDenials struct {
	// numbers are those of the events, oldest first.
	numbers []uint64
	bytes   int64
}

// hasDenial is true if a denial is remembered.
func (j *journal) hasDenial() bool {
	return slices.ContainsFunc(j.events, func(e *quota.Event) bool { return e.Kind == quota.EventDenied })
}

// countDenial adds a new event to what its owner has, if it is a denial with an owner.
func (j *journal) countDenial(e *quota.Event) {
	if e.Owner == "" {
		return
	}
	of := j.denials[e.Owner]
	if of == nil {
		of = &userDenials{}
		if j.denials == nil {
			j.denials = map[string]*userDenials{}
		}
		j.denials[e.Owner] = of
	}
	of.numbers = append(of.numbers, e.Number)
	of.bytes += eventSize(e)
}

// discountDenial is for the oldest event that is dropped, which is the oldest one of its owner too.
func (j *journal) discountDenial(e *quota.Event) {
	if of := j.denials[e.Owner]; of != nil {
		of.numbers = of.numbers[1:]
		of.bytes -= eventSize(e)
		if len(of.numbers) == 0 {
			delete(j.denials, e.Owner)
		}
	}
}

// limitDenials drops the oldest denials of a user beyond its share of the events, so that those of others stay. The
// newest is always kept.
func (j *journal) limitDenials(owner string) {
	of := j.denials[owner]
	if of == nil || !j.isBeyondShare(of) {
		return
	}
	first, _ := slices.BinarySearchFunc(j.events, of.numbers[0], compareNumber)
	kept := j.events[:first]
	for i, e := range j.events[first:] {
		if !j.isBeyondShare(of) {
			kept = append(kept, j.events[first+i:]...) // most often all but one
			break
		}
		if e.Owner != owner {
			kept = append(kept, e)
			continue
		}
		j.bytes -= eventSize(e)
		j.discountDenial(e)
	}
	clear(j.events[len(kept):])
	j.events = kept
}

// isBeyondShare is true if a user has more denials than its share.
func (j *journal) isBeyondShare(of *userDenials) bool {
	most := max(1, j.bounds.Events/quota.DenialsPerUser)
	return len(of.numbers) > most ||
		j.boundsBytes() && of.bytes > j.bounds.EventBytes/quota.DenialsPerUser && len(of.numbers) > 1
}
