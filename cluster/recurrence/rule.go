// Package recurrence computes when limits recur: a [Rule] is a text such as "weekdays 18:00-08:00 Europe/Zurich", and
// [Rule.Windows] are the spans of civil time that follow from it.
//
// The leader uses it when it proposes commands. The ledger does not: tables of time zones differ between versions, so
// the log has the windows as instants (docs/adr/0101). The table is [Zones]: that of the program, or of a folder.
package recurrence

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

// Rule says when windows begin and end, by the clock of a time zone.
type Rule struct {
	days     dayRule
	span     daySpan
	location *time.Location
	text     string
}

// Form is how a rule is written.
const Form = `DAYS HH:MM-[DAY ]HH:MM [ZONE], such as "weekdays 18:00-08:00 Europe/Zurich", "fri 18:00-mon 08:00" or ` +
	`"monthly 1,15 09:00-12:00"`

// Parse reads a rule with the table of the program, see [Zones.Parse].
func Parse(text string) (Rule, error) { return CompiledZones().Parse(text) }

// Parse reads a rule of at most [quota.MaxRule] bytes. The time zone is UTC unless the text names one of the table. An
// error says which part of the text is wrong and what is allowed.
func (z *Zones) Parse(text string) (Rule, error) {
	if len(text) > quota.MaxRule {
		return Rule{}, fmt.Errorf("the rule has %d bytes; at most %d are allowed", len(text), quota.MaxRule)
	}
	words := &wordList{left: strings.Fields(text)}
	if len(words.left) == 0 {
		return Rule{}, fmt.Errorf("the rule is empty: write %s", Form)
	}
	days, err := parseDays(words)
	if err != nil {
		return Rule{}, err
	}
	span, err := parseSpan(words)
	if err != nil {
		return Rule{}, err
	}
	location, err := z.parseZone(words)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{days: days, span: span, location: location}
	if r.text = strings.Join([]string{days.text, span.text, location.String()}, " "); len(r.text) > quota.MaxRule {
		return Rule{}, fmt.Errorf("with its time zone the rule has %d bytes; at most %d are allowed", len(r.text),
			quota.MaxRule)
	}
	if !r.pauses() {
		return Rule{}, fmt.Errorf("the windows of %q leave no pause between them: a limit that is always in force needs "+
			"no rule", r.text)
	}
	return r, nil
}

// String is the rule as text that Parse reads, in one form for all texts of the same rule: with single spaces, in lower
// case and with the time zone.
func (r Rule) String() string { return r.text }

// wordList are the words of a rule that are still to be read.
type wordList struct{ left []string }

// next is empty at the end.
func (w *wordList) next() string {
	if len(w.left) == 0 {
		return ""
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

func (z *Zones) parseZone(words *wordList) (*time.Location, error) {
	name := words.next()
	if len(words.left) > 0 {
		return nil, fmt.Errorf("%q is behind the time zone: a rule ends with it", quota.Clip(words.left[0]))
	}
	if name == "" {
		return time.UTC, nil
	}
	return z.Load(name)
}
