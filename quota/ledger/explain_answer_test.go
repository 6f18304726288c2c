package ledger_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

var eventWords = map[quota.EventKind]string{
	quota.EventCrossed: "crossed", quota.EventCleared: "cleared",
	quota.EventDenied: "denied", quota.EventPreempted: "preempted", quota.EventExpired: "expired",
	quota.EventRestored: "restored",
	quota.EventRevoked:  "revoked", quota.EventDropped: "dropped", quota.EventDrained: "drained",
	quota.EventLimitScheduled: "scheduled", quota.EventLimitStarted: "begun", quota.EventLimitEnding: "announced to end",
	quota.EventLimitEnded: "ended", quota.EventLimitSkipped: "skipped", quota.EventDeclaredEnd: "over",
}

func (p *player) events(v ledger.Sandbox, args []string) error {
	f, most := quota.EventFilter{}, math.MaxInt
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "after":
			f.After = uint64((&parser{}).amount(value))
		case "max":
			most = int((&parser{}).amount(value))
		case "id":
			f.ID = value
		case "at":
			f.Tree, f.Node = nodeAt(value)
		case "kind":
			for k, word := range eventWords {
				if word == value {
					f.Kind = k
				}
			}
		default:
			return fmt.Errorf("what is %s?", arg)
		}
	}
	page := v.Events(f, most)
	for _, e := range page.Events {
		text := fmt.Sprintf("%d: %s was %s", e.Number, e.ID+quota.Place(e.Tree, e.Node), eventWords[e.Kind])
		if e.By != "" {
			text += " because of " + e.By
		}
		if e.Crossing != nil {
			text = fmt.Sprintf("%d: %s", e.Number, crossingWords(e.Crossing, eventWords[e.Kind]))
		}
		p.say("%s, %s", text, moment(e.Stamp.At, e.Stamp.Wall))
		if s := e.Scheduled; s != nil {
			p.say("  %s", describeScheduled(s.Limit))
			for _, o := range s.Over {
				p.say("  over its limit then: %s holds %d of %d %s", quota.Place(o.Tree, o.Node), o.Used, o.Limit, o.Resource)
			}
		}
		if e.Decision != nil {
			p.say("  %s", e.Decision.Explain())
		}
	}
	if page.Next != 0 {
		p.say("more after %d", page.Next)
	}
	return nil
}

func (p *player) explain(v ledger.Sandbox, args []string) error {
	if len(args) == 1 {
		p.explainID(v, args[0])
		return nil
	}
	c, err := parseCommand(append([]string{"allocate"}, args...), nil)
	if err != nil {
		return err
	}
	out := v.Explain(c.(quota.Allocate))
	p.outcome(c, out.Outcome)
	if out.Decision != nil {
		p.remedy(out.Decision.Remedy)
	}
	return nil
}

// verdictWords are what the levels of an explanation say.
var verdictWords = map[quota.LevelVerdict]string{
	quota.LevelFits: "fits", quota.LevelExceeded: "exceeded", quota.LevelBorrows: "borrows",
	quota.LevelMakesRoom: "makes room", quota.LevelUnchecked: "not checked",
}

func (p *player) levels(v ledger.Sandbox, args []string) error {
	c, err := parseCommand(append([]string{"allocate"}, args...), nil)
	if err != nil {
		return err
	}
	out := v.Explain(c.(quota.Allocate))
	p.outcome(c, out.Outcome)
	for _, l := range out.Levels {
		what := l.Resource
		switch l.Kind {
		case quota.OfApplications:
			what = "applications"
		case quota.OfBorrowing:
			what = "borrowed " + what
		case quota.OfItems:
			what += " " + l.Item
		case quota.OfResource, quota.OfQueue, quota.OfHold:
		}
		number := ""
		if l.Alternative > 0 {
			number = fmt.Sprintf("%d. ", l.Alternative)
		}
		p.say("  %s%s, %s%s: %d of %s, %d requested, %d left: %s", number, quota.Place(l.Tree, l.Node), l.Holder, what,
			l.Used, l.Limit, l.Requested, l.Left(), verdictWords[l.Verdict])
	}
	return nil
}

func (p *player) explainID(v ledger.Sandbox, id string) {
	decision, info, at, refused := v.ExplainID(id)
	if refused != nil {
		p.say("refused %s: %s", refused.Kind, refused.Error())
		return
	}
	p.say("%s", decision.Explain())
	p.wouldPlace(decision)
	if info != nil {
		p.allocation(*info)
	}
	if at != nil {
		p.say("  that was %s", moment(at.At, at.Wall))
	}
	p.remedy(decision.Remedy)
}

func (p *player) remedy(r *quota.Remedy) {
	if r == nil {
		return
	}
	if r.Alternative > 0 {
		p.say("  for alternative %d:", r.Alternative)
	}
	for _, raise := range r.Raises {
		what := raise.Resource
		if raise.Kind == quota.OfApplications {
			what = "applications"
		}
		configure := ""
		if raise.Unconfigured {
			configure = ", which must be configured first"
		}
		p.say("  raise %s%s of %s from %d to %d%s", raise.Holder, what, quota.Place(raise.Tree, raise.Node), raise.From,
			raise.To, configure)
	}
	if len(r.Releases) > 0 {
		p.say("  or release %s", strings.Join(r.Releases, " "))
	}
	if len(r.Raises)+len(r.Releases) == 0 {
		p.say("  nothing would help")
	}
}

func (p *player) due(v ledger.Sandbox) {
	at, waits := v.NextDue()
	if !waits {
		p.say("nothing is due")
		return
	}
	p.say("the next is due at %s", time.Duration(at)*time.Millisecond)
}
