package ledger_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// wait is false for words that are not about the queue.
func (p *parser) wait(r *quota.Allocate, key, value string) bool {
	switch key {
	case "@wait":
		r.Mode = quota.Wait
		if value != "" {
			r.WaitFor = p.span(value)
		}
	case "@keep":
		r.Keep = p.span(value)
	case "@rank":
		r.Priority = int64(p.amount(value))
	default:
		return false
	}
	return true
}

// queue shows who waits, by pages of two.
func (p *player) queue(v ledger.Sandbox, args []string) {
	var f quota.QueueFilter
	for _, arg := range args {
		if resource, ok := strings.CutPrefix(arg, "resource="); ok {
			f.Resource = resource
		} else {
			f.Tree, f.Node = nodeAt(arg)
		}
	}
	var after *quota.QueueTurn
	for {
		page, refused := v.Waiting(f, after, 2)
		if refused != nil {
			p.say("refused %s: %s", refused.Kind, refused.Error())
			return
		}
		for _, q := range page.Requests {
			info, _ := v.Allocation(q.Allocation.ID)
			if info.Resize != nil {
				p.say("%s, %s: %s", q.Allocation.ID, resizeWords(*info.Resize), q.Decision.Explain())
				continue
			}
			p.say("%s, %s: %s", q.Allocation.ID, claimPlace(*info.Waiting), q.Decision.Explain())
		}
		if after = page.Next; after == nil {
			return
		}
	}
}

func claimPlace(w quota.WaitingInfo) string {
	var places []string
	for _, at := range w.Alternatives {
		places = append(places, fmt.Sprintf("alternative %d is number %d in the line for %s", at.Alternative, at.Position,
			at.Line))
	}
	if len(places) > 0 {
		return strings.Join(places, ", ")
	}
	return fmt.Sprintf("number %d in the line for %s", w.Position, w.Line)
}

func resizeWords(r quota.WaitingResize) string {
	text := "resize"
	if r.Generation > 0 {
		text += fmt.Sprintf(" %d", r.Generation)
	}
	for _, c := range r.Claims {
		text += " " + quota.Place(c.Tree, c.Node)
		for _, component := range c.Amounts {
			text += fmt.Sprintf(" %s=%d", component.Resource, component.Amount)
		}
	}
	if r.Waiting.Line == "" {
		return text
	}
	return text + " waits since " + sinceBegin(r.Waiting.Since) + ", until " + sinceBegin(r.Waiting.Until) + ", " +
		claimPlace(r.Waiting)
}

func waits(a quota.AllocationInfo) string {
	w := a.Waiting
	return fmt.Sprintf(", waits since %s, until %s, kept until %s, %s",
		strings.TrimPrefix(moment(w.Since, w.SinceWall), "at "), sinceBegin(w.Until),
		sinceBegin(w.KeepUntil), claimPlace(*w))
}

func sinceBegin(at quota.Instant) string { return (time.Duration(at) * time.Millisecond).String() }

// happened says what a command did to others in the queue, and whose leases it has revoked.
func (p *player) happened(c quota.Command) {
	own := ""
	switch c := c.(type) {
	case quota.Allocate:
		own = c.ID
	case quota.Resize:
		own = c.ID
	}
	for _, f := range p.ledger.TakeFacts() {
		if f.Crossing != nil {
			p.say("  %s", crossingWords(f.Crossing, eventWords[factEvents[f.Kind]]))
			continue
		}
		if f.Allocation == nil {
			continue // the answer to the command says how it has changed the configuration
		}
		a := f.Allocation.Info()
		switch {
		case f.Kind == ledger.FactGranted && a.ID != own:
			p.say("  granted to %s, fence %d%s%s", a.ID, a.Fence, alternativeWords(a.Alternative), leaseWords(a))
			p.placed(a)
			p.ranges(a)
		case f.Kind == ledger.FactResized && f.Since > 0:
			p.say("  resized %s%s", a.ID, claimWords(a))
			p.placed(a)
		case f.Kind == ledger.FactResizeDropped && a.ID != own:
			p.say("  the resize of %s waits no more", a.ID)
		case f.Kind == ledger.FactRevoked:
			p.say("  revoked from %s for %s%s", a.ID, a.RevokedBy, leaseWords(a))
		case f.Kind == ledger.FactEnded && a.Fence == 0:
			suffix := ""
			if a.PreemptedBy != "" {
				suffix = " by " + a.PreemptedBy
			}
			p.say("  %s waits no more: %s%s", a.ID, stateWords[a.State], suffix)
		}
	}
}

// factEvents are the kinds of events with the same crossing.
var factEvents = map[ledger.FactKind]quota.EventKind{
	ledger.FactCrossed: quota.EventCrossed, ledger.FactCleared: quota.EventCleared,
}

// crossingWords are such as "t:a has crossed 80% of cores: 8 of 10".
func crossingWords(c *quota.Crossing, word string) string {
	text := fmt.Sprintf("%s has %s %d%% of %s: %d of %s", quota.Place(c.Tree, c.Node), word, c.Percent, c.Resource, c.Used,
		c.Limit)
	if c.Omitted > 0 {
		text += fmt.Sprintf(", and %d more", c.Omitted)
	}
	return text
}

func waitingCount(c quota.Counts) string {
	if c.Waiting == 0 {
		return ""
	}
	return fmt.Sprintf(", %d waiting", c.Waiting)
}

func wholeQueue(v ledger.Sandbox) []quota.QueuedInfo {
	page, refused := v.Waiting(quota.QueueFilter{}, nil, math.MaxInt)
	if refused != nil {
		panic(refused)
	}
	return page.Requests
}
