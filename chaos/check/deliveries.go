package check

import (
	"cmp"
	"math"

	"github.com/quorate/quorate/chaos/history"
)

// Deliveries are what a webhook receiver got during a run, in the order of their first arrival.
type Deliveries struct {
	// From is the index from which on every event is to be delivered.
	From   uint64
	Events []Delivery
	Gaps   []DeliveryGap
	// Wrong are deliveries with a bad signature, or that came again with another body.
	Wrong []string
	// Unfinished says why not everything was delivered at the end; empty if it was.
	Unfinished string
}

// Delivery is the event of one delivery.
type Delivery struct {
	Index  uint64
	Number uint32
	Type   string
	ID     string
	Fence  uint64
}

// DeliveryGap says that the events of some indexes are not delivered.
type DeliveryGap struct{ After, Until uint64 }

// JudgeDeliveries finds grants that were acknowledged and not delivered, and deliveries that came before those in front
// of them. A grant that may be in a gap is not missed, and may come late: the leader that told of the gap may have lost
// its leadership before it could report that, and the next one may remember the events.
func JudgeDeliveries(h history.History, f Finals, d Deliveries) *Verdict {
	v := &Verdict{Promise: "webhooks", Title: "webhooks: every grant is delivered, in order", Counts: map[string]int{}}
	if d.Unfinished != "" {
		v.Undecided = d.Unfinished
		return v
	}
	v.Count("deliveries", len(d.Events))
	v.Count("gaps", len(d.Gaps))
	for _, wrong := range d.Wrong {
		v.AddViolation("%s", wrong)
	}
	granted := map[uint64]bool{}
	var last Delivery
	for _, e := range d.Events {
		switch {
		case d.mayMiss(e.Index, e.Index):
			v.Count("late deliveries of gaps", 1)
		case compareDeliveries(last, e) >= 0:
			v.AddViolation("event %d.%d was first delivered after %d.%d", e.Index, e.Number, last.Index, last.Number)
		default:
			last = e
		}
		if e.Type == "allocation.granted" {
			granted[e.Fence] = true
		}
	}
	for _, l := range newTimeline(h, f).byFence {
		if l.minGrantIndex <= d.From || d.mayMiss(l.minGrantIndex, l.maxGrantIndex) || l.splitBy != nil {
			continue
		}
		v.Count("acknowledged grants", 1)
		if !granted[l.fence] {
			v.AddViolation("%s was granted with fence %d, from index %d to %d, and never delivered", l.id, l.fence,
				l.minGrantIndex, l.maxGrantIndex)
		}
	}
	return v
}

func compareDeliveries(a, b Delivery) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Number, b.Number))
}

func (d *Deliveries) mayMiss(least, most uint64) bool {
	if most == 0 {
		most = math.MaxUint64
	}
	for _, g := range d.Gaps {
		if least <= g.Until && most >= g.After {
			return true
		}
	}
	return false
}
