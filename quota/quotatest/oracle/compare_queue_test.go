package oracle

import (
	"cmp"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// compareQueue reads who waits where, until when and why.
func (p *pair) compareQueue(t *rapid.T) {
	page, refused := p.ledger.Sandbox().Waiting(quota.QueueFilter{}, nil, 1000)
	if refused != nil {
		t.Fatal(refused)
	}
	var got strings.Builder
	for _, w := range page.Requests {
		info := w.Allocation.Waiting
		if w.Allocation.Resize != nil {
			info = &w.Allocation.Resize.Waiting
		}
		fmt.Fprintf(&got, "%s waits until %d or %d: %+v\n", w.Allocation.ID, info.Until, info.KeepUntil,
			w.Decision.Violations)
		places := info.Alternatives
		if len(places) == 0 {
			places = []quota.WaitingPlace{{Position: info.Position, Line: info.Line}}
		}
		for _, at := range places {
			fmt.Fprintf(&got, "  %d is number %d for %s\n", at.Alternative, at.Position, at.Line)
		}
	}
	quotatest.RequireSame(t, "the queue", p.oracle.describeQueue(), got.String())
}

func (o *oracle) describeQueue() string {
	var text strings.Builder
	for i, a := range o.waiting {
		if i == 0 || !a.isListOf(o.waiting[i-1]) {
			fmt.Fprintf(&text, "%s waits until %d or %d: %+v\n", a.request.ID, a.waiter.until,
				cmp.Or(a.waiter.keepUntil, a.waiter.until), o.inTheWayOf(a.waiter))
		}
		what := a.line.resource
		if a.line.aside {
			what = "a higher limit of " + what
		}
		fmt.Fprintf(&text, "  %d is number %d for %s at %s\n", a.alternative, o.queued(a.line, a, true)+1, what,
			quota.Place(a.line.tree, a.line.node))
	}
	return text.String()
}
