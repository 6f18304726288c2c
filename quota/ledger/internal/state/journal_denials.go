package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

type userDenials struct {
	// Numbers are those of the events, oldest first.
	Numbers []uint64
	Bytes   int64
}

// HasDenial is true if a denial is remembered.
func (j *Journal) HasDenial() bool {
	return slices.ContainsFunc(j.Events, func(e *quota.Event) bool { return e.Kind == quota.EventDenied })
}

// CountDenial adds a new event to what its owner has, if it is a denial with an owner.
func (j *Journal) CountDenial(e *quota.Event) {
	if e.Owner == "" {
		return
	}
	denials := j.Denials[e.Owner]
	if denials == nil {
		denials = &userDenials{}
		if j.Denials == nil {
			j.Denials = map[string]*userDenials{}
		}
		j.Denials[e.Owner] = denials
	}
	denials.Numbers = append(denials.Numbers, e.Number)
	denials.Bytes += EventSize(e)
}

// discountDenial is for the oldest event that is dropped, which is the oldest one of its owner too.
func (j *Journal) discountDenial(e *quota.Event) {
	if denials := j.Denials[e.Owner]; denials != nil {
		denials.Numbers = denials.Numbers[1:]
		denials.Bytes -= EventSize(e)
		if len(denials.Numbers) == 0 {
			delete(j.Denials, e.Owner)
		}
	}
}

// limitDenials drops the oldest denials of a user beyond its share of the events, so that those of others stay. The
// newest is always kept.
func (j *Journal) limitDenials(owner string) {
	denials := j.Denials[owner]
	if denials == nil || !j.isBeyondShare(denials) {
		return
	}
	first, _ := slices.BinarySearchFunc(j.Events, denials.Numbers[0], compareNumber)
	kept := j.Events[:first]
	for i, e := range j.Events[first:] {
		if !j.isBeyondShare(denials) {
			kept = append(kept, j.Events[first+i:]...) // most often all but one
			break
		}
		if e.Owner != owner {
			kept = append(kept, e)
			continue
		}
		j.bytes -= EventSize(e)
		j.discountDenial(e)
	}
	clear(j.Events[len(kept):])
	j.Events = kept
}

func (j *Journal) isBeyondShare(denials *userDenials) bool {
	most := max(1, j.Bounds.Events/quota.DenialsPerUser)
	return len(denials.Numbers) > most ||
		j.BoundsBytes() && denials.Bytes > j.Bounds.EventBytes/quota.DenialsPerUser && len(denials.Numbers) > 1
}
