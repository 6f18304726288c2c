package ledger_test

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// known finds what an id stands for, or the refusal of a command about it.
func (o *oracle) known(id string) (*grant, verdict) {
	if !idPattern.MatchString(id) {
		return nil, refusal(quota.Invalid, "id")
	}
	g := o.find(id)
	if g == nil {
		return nil, refusal(quota.NotFound, "id")
	}
	return g, verdict{}
}

func (o *oracle) confirm(c quota.Confirm) verdict {
	g, refused := o.known(c.ID)
	switch {
	case g == nil:
		return refused
	case g.state == quota.Held:
		return verdict{repeated: true, fence: g.fence}
	case g.ended != nil || g.until <= o.now.At:
		return refusal(quota.Ended, "id")
	}
	g.state, g.until = quota.Held, 0
	g.begin(o.now)
	return verdict{fence: g.fence}
}

func (o *oracle) cancel(c quota.Cancel) verdict {
	g, refused := o.known(c.ID)
	switch {
	case g == nil:
		return refused
	case g.ended != nil:
		return verdict{repeated: true, fence: g.fence}
	case g.state == quota.Held:
		return refusal(quota.InUse, "id")
	}
	o.end(g, quota.Cancelled)
	return verdict{fence: g.fence}
}

func (o *oracle) expire(c quota.Expire) verdict {
	if c.Most < 1 || c.Most > 1024 {
		return refusal(quota.Invalid, "most")
	}
	expired := 0
	for ; expired < c.Most && o.expireOne(); expired++ {
		continue
	}
	return verdict{expired: expired}
}

// expireOne does what is due first; false if nothing is.
func (o *oracle) expireOne() bool {
	g, it := o.nextDue()
	switch {
	case g != nil && g.endsAt() <= o.now.At:
		o.end(g, quota.Expired)
		o.note(quota.Event{Kind: quota.EventExpired, ID: g.request.ID})
	case it != nil && it.dueAt(o) <= o.now.At:
		o.turnItem(it)
	default:
		return false
	}
	return true
}

// nextDue is what ends or changes first: of allocations the oldest if several do, of items the one that changed first.
// The other one is nil.
func (o *oracle) nextDue() (*grant, *thing) {
	var first *grant
	for _, g := range o.held() {
		if at := g.endsAt(); at != 0 && (first == nil || at < first.endsAt()) {
			first = g
		}
	}
	var item *thing
	for _, it := range o.items {
		at := it.dueAt(o)
		if at != 0 && (item == nil || at < item.dueAt(o) || at == item.dueAt(o) && it.turn < item.turn) {
			item = it
		}
	}
	if first != nil && (item == nil || first.endsAt() <= item.dueAt(o)) {
		return first, nil
	}
	return nil, item
}

func (o *oracle) note(e quota.Event) {
	e.Number, e.Stamp = uint64(len(o.events)+1), o.now
	o.events = append(o.events, e)
}

// compareLapses reads what is due next, and what happened.
func (p *pair) compareLapses(t *rapid.T) {
	var want, got []any
	switch g, it := p.oracle.nextDue(); {
	case g != nil:
		want = append(want, g.endsAt())
	case it != nil:
		want = append(want, it.dueAt(p.oracle))
	}
	if at, waits := p.ledger.View().NextDue(); waits {
		got = append(got, at)
	}
	same(t, "what is due", want, got)
	remembered := p.oracle.events[max(0, len(p.oracle.events)-p.oracle.bounds.Events):]
	for after := uint64(0); len(remembered) > 0; {
		most := 1 + len(remembered)/3
		page := p.ledger.View().Events(after, 0, "", most)
		most = min(most, len(remembered))
		sameEvents(t, remembered[:most], page.Events)
		remembered = remembered[most:]
		if (page.Next == 0) != (len(remembered) == 0) {
			t.Fatalf("the page after %d says that the next one is after %d, but %d more are remembered", after, page.Next, len(remembered))
		}
		after = page.Next
	}
	for _, id := range []string{"i0", "i1"} {
		last := p.ledger.View().Events(0, quota.EventDenied, id, math.MaxInt)
		of := slices.DeleteFunc(slices.Clone(p.oracle.events[max(0, len(p.oracle.events)-p.oracle.bounds.Events):]), func(e quota.Event) bool {
			return e.ID != id || e.Kind != quota.EventDenied
		})
		sameEvents(t, of, last.Events)
	}
}

func sameEvents(t *rapid.T, want, got []quota.Event) {
	if len(want) != len(got) {
		t.Fatalf("there are %d events, want %d", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		if w.Decision != nil && g.Decision != nil && g.Request != nil {
			same(t, "the reasons of a denial", w.Decision.Violations, g.Decision.Violations)
			same(t, "the denied request", *w.Request, *g.Request)
		}
		w.Request, w.Decision, g.Request, g.Decision = nil, nil, nil, nil
		same(t, "event", w, g)
	}
}
