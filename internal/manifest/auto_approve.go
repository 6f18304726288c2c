package manifest

import (
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Bounds of the rule auto-approve, the same as the API's.
const (
	maxAutoPercent = 100
	minAutoEvery   = time.Hour
	maxAutoEvery   = 366 * day
)

// parseAutoApprove reads a rule such as {at-most: 20%, every: 30d, within-headroom: true}; nil if there is none.
func (p *parser) parseAutoApprove(what string, sections map[string]value) *quoratev1.AutoApprove {
	v, found := sections["auto-approve"]
	if !found {
		return nil
	}
	place := "auto-approve of " + what
	terms := p.knownSections(place, v, autoApproveMap)
	if v.kind == kindMap && (terms["at-most"].text == "" || terms["every"].text == "") {
		p.addProblem(v.line, v.column, "%s needs both parts: write auto-approve: {at-most: 20%%, every: 30d}", place)
		return nil
	}
	rule := &quoratev1.AutoApprove{EveryMs: p.parseSpan(place, "every", terms, maxAutoEvery)}
	if ms := rule.GetEveryMs(); ms > 0 && ms < minAutoEvery.Milliseconds() {
		p.addProblem(terms["every"].line, terms["every"].column, "every of %s: %q is too short: the minimum is %s", place,
			terms["every"].text, formatSpan(minAutoEvery.Milliseconds()))
	}
	if most := terms["at-most"]; most.kind == kindText {
		rule.AtMostPercent = p.parsePercent("at-most of "+place, most, maxAutoPercent)
	}
	rule.WithinHeadroom = p.parseFlag(place, "within-headroom", terms)
	return rule
}

func autoApproveValue(a *quoratev1.AutoApprove) value {
	v := value{kind: kindMap}
	if a == nil {
		return v
	}
	v.addEntry("at-most", percentValue(a.GetAtMostPercent()))
	v.addEntry("every", value{text: formatDays(a.GetEveryMs()), plain: true})
	v.addFlag("within-headroom", a.GetWithinHeadroom())
	return v
}
