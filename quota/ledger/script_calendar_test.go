package ledger_test

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

func (p *parser) calendar(word string, args []string) quota.Command {
	if word == "civil" {
		return quota.SetCivilOffset{Offset: quota.Span(p.civil(args[0]))}
	}
	meta := p.meta(args)
	switch word {
	case "unschedule":
		return quota.CancelScheduledLimit{ID: args[0], Actor: meta.Actor, Reason: meta.Reason}
	case "extend":
		return quota.ExtendSchedule{ID: args[0], Windows: p.windows(args[1:])}
	}
	tree, node := nodeAt(args[1])
	c := quota.ScheduleLimits{
		ID: args[0], Tree: tree, Node: node, Windows: p.windows(args[2:]), Actor: meta.Actor, Reason: meta.Reason,
	}
	for _, arg := range args[2:] {
		if rule, ok := strings.CutPrefix(arg, "@every="); ok {
			c.Rule = rule
		}
		if begins, ok := strings.CutPrefix(arg, "@begins="); ok {
			c.RuleBegins = p.civil(begins)
		}
		if ends, ok := strings.CutPrefix(arg, "@ends="); ok {
			c.RuleEnds = p.civil(ends)
		}
		if a, ok := p.adjustment(arg); ok {
			c.Adjustments = append(c.Adjustments, a)
		}
	}
	slices.SortFunc(c.Adjustments, func(a, b quota.LimitAdjustment) int { return strings.Compare(a.Resource, b.Resource) })
	return c
}

func (p *parser) civil(text string) quota.CivilTime {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.fail("%v", err)
	}
	return quota.CivilTime(d.Milliseconds())
}

func (p *parser) windows(args []string) []quota.CivilWindow {
	var list []quota.CivilWindow
	for _, arg := range args {
		if from, until, ok := strings.Cut(arg, ".."); ok {
			list = append(list, quota.CivilWindow{From: p.civil(from), Until: p.civil(until)})
		}
	}
	return list
}

func (p *parser) adjustment(arg string) (quota.LimitAdjustment, bool) {
	if name, most, ok := strings.Cut(arg, "<"); ok {
		return quota.LimitAdjustment{Resource: name, Kind: quota.CapLimit, Amount: p.amount(most)}, true
	}
	name, amount, ok := strings.Cut(arg, "=")
	if !ok || strings.HasPrefix(arg, "@") {
		return quota.LimitAdjustment{}, false
	}
	a := quota.LimitAdjustment{Resource: name, Kind: quota.SetLimit}
	if strings.ContainsAny(amount[:1], "+-") {
		a.Kind = quota.AddToLimit
	}
	a.Amount = p.amount(strings.TrimPrefix(amount, "+"))
	return a, true
}

func (p *player) sayScheduled(args []string) {
	tree, node := nodeAt(strings.Join(args, ""))
	for _, s := range p.ledger.Reader().ScheduledLimits(tree, node) {
		p.say("%s", describeScheduled(s))
	}
	p.say("civil time is %s", p.ledger.Reader().CivilTime())
}

func describeScheduled(s quota.ScheduledLimit) string {
	text := s.ID + " at " + quota.Place(s.Tree, s.Node) + ": " + quota.FormatAdjustments(s.Adjustments)
	for i, w := range s.Windows {
		if text += ", " + clock(w.From) + " to " + clock(w.Until); i == 0 && s.InForce {
			text += " (in force)"
		}
	}
	if s.Rule != "" {
		text += ", " + s.Rule
	}
	for _, w := range s.Skipped {
		text += ", without " + clock(w.From) + " to " + clock(w.Until) + " (" + w.Reason + ")"
	}
	if s.Reason != "" {
		text += ", " + s.Actor + ": " + s.Reason
	}
	return text
}

// clock is a civil time without the date and the seconds, which scenarios do not need.
func clock(t quota.CivilTime) string { return t.String()[len("1970-01-"):len("1970-01-01T00:00")] }

func isCivilOffset(c quota.Command) bool {
	_, ok := c.(quota.SetCivilOffset)
	return ok
}
