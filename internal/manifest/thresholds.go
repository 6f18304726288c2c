package manifest

import (
	"slices"
	"strconv"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Bounds of thresholds, the same as the API's.
const (
	maxThresholds       = 4
	maxThresholdPercent = 200

	noThresholds = "none"
)

// parseThresholds reads thresholds of limits, such as [80%, 95%] or {percents: [80%, 95%], margin: 10%}, or the word
// none; nil if they are those of the parent.
func (p *parser) parseThresholds(what string, sections map[string]value) *quoratev1.LimitThresholds {
	v, found := sections["thresholds"]
	place := "thresholds of " + what
	switch {
	case !found:
		return nil
	case v.kind == kindText && v.text == noThresholds:
		return &quoratev1.LimitThresholds{None: true}
	case v.kind == kindList:
		return &quoratev1.LimitThresholds{Percents: p.parsePercents(place, v)}
	case v.kind != kindMap:
		p.addProblem(v.line, v.column, "%s is a list such as [80%%, 95%%], a map such as "+
			"{percents: [80%%, 95%%], margin: 10%%}, or the word %s, not %s", place, noThresholds, v.describeValue())
		return nil
	}
	terms := p.knownSections(place, v, thresholdsMap)
	w := &quoratev1.LimitThresholds{Percents: p.parsePercents("percents of "+place, terms["percents"])}
	if margin, given := terms["margin"]; given {
		most := int32(maxThresholdPercent)
		if len(w.GetPercents()) > 0 {
			most = w.GetPercents()[0]
		}
		w.MarginPercent = p.parsePercent("margin of "+place, margin, most-1)
	}
	return w
}

func (p *parser) parsePercents(place string, list value) []int32 {
	if list.kind != kindList || len(list.items) == 0 || len(list.items) > maxThresholds {
		p.addProblem(list.line, list.column, "%s is a list of 1 to %d thresholds, such as [80%%, 95%%]", place, maxThresholds)
		return nil
	}
	var percents []int32
	for _, v := range list.items {
		percent := p.parsePercent(place, v, maxThresholdPercent)
		if percent > 0 && slices.Contains(percents, percent) {
			p.addProblem(v.line, v.column, "%s: %d%% is given twice", place, percent)
		}
		percents = append(percents, percent)
	}
	slices.Sort(percents)
	return percents
}

// parsePercent reads a number of percent from 1.
func (p *parser) parsePercent(place string, v value, most int32) int32 {
	number, isPercent := strings.CutSuffix(v.text, "%")
	percent, err := strconv.ParseInt(number, 10, 32)
	if v.kind != kindText || !isPercent || err != nil || percent < 1 || percent > int64(most) {
		p.addProblem(v.line, v.column, "%s: %s is not a number of percent from 1%% to %d%%", place, v.describeValue(), most)
		return 0
	}
	return int32(percent)
}

func addThresholds(v *value, w *quoratev1.LimitThresholds) {
	list := value{kind: kindList}
	for _, percent := range slices.Sorted(slices.Values(w.GetPercents())) {
		list.items = append(list.items, percentValue(percent))
	}
	switch {
	case w.GetNone():
		v.addText("thresholds", noThresholds)
	case w.GetMarginPercent() == 0:
		v.addFilled("thresholds", list)
	default:
		terms := value{kind: kindMap}
		terms.addEntry("percents", list)
		terms.addEntry("margin", percentValue(w.GetMarginPercent()))
		v.addEntry("thresholds", terms)
	}
}

func percentValue(percent int32) value {
	return value{text: strconv.FormatInt(int64(percent), 10) + "%", plain: true}
}
