// Package check judges a history: the promises P1 to P12 of docs/consistency.md, linearizability and liveness, from
// what clients saw and from the final states of all nodes.
//
// No check reports what a correct cluster may do. Where the history leaves something open (an answer was lost, an
// index is not known, a lease ended unseen), a check assumes what is best for the cluster, so every reported
// violation is one under every possible course of events.
package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/history"
)

// Options limit the search of Judge and say where to leave pictures.
type Options struct {
	// Timeout bounds the search for a linearization of each group of trees and of each item; a minute if 0. A search
	// that takes longer is undecided.
	Timeout time.Duration
	// Pictures is a folder for a page about each history that has no linearization; none if empty.
	Pictures string
}

// Judge returns a verdict for each promise, for linearizability and for liveness.
func Judge(h history.History, f Finals) Verdicts { return JudgeWith(h, f, Options{}) }

// JudgeWith is Judge with options.
func JudgeWith(h history.History, f Finals, o Options) Verdicts {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	s := newTimeline(h, f)
	explained := s.checkExplained()
	return Verdicts{
		s.checkNeverOver(), s.checkNeverTwice(), s.checkNeverLost(), s.checkNeverEarly(), s.checkFenced(),
		s.checkAllOrNothing(), s.checkRealTimeOrder(), s.checkQueueOrder(),
		s.checkSameEverywhere(), explained, s.checkTimely(), s.checkNeverLate(), s.checkLinearizable(o, explained),
		s.checkLive(), s.checkThresholds(),
	}
}

// maxMessages bounds how many violations of a promise are described.
const maxMessages = 20

// Live is the one promise whose check depends on the speed of the machine.
const Live = "live"

// Verdict is the result of checking one promise.
type Verdict struct {
	// Promise is "P1" to "P12", "linearizable" or Live; or one of guarded clusters, which package guarded checks.
	Promise string `json:"promise"`
	Title   string `json:"title"`
	// Counts is the number of checked cases by kind. A promise without checked cases is untried, not kept.
	Counts map[string]int `json:"saw"`
	// Messages describe violations, at most 20; Violations is how many there were.
	Messages   []string `json:"broken,omitempty"`
	Violations int      `json:"violations"`
	// Undecided says why the check did not finish. An undecided promise does not pass.
	Undecided string `json:"undecided,omitempty"`
}

// Status is the verdict in one word: kept, broken, undecided, or untried if nothing was examined.
func (v *Verdict) Status() string {
	switch {
	case v.Violations > 0:
		return "broken"
	case v.Undecided != "":
		return "undecided"
	case v.Examined() == 0:
		return "untried"
	}
	return "kept"
}

// Examined returns how much was examined in all.
func (v *Verdict) Examined() int {
	all := 0
	for _, n := range v.Counts {
		all += n
	}
	return all
}

// Count adds checked cases of a kind.
func (v *Verdict) Count(what string, n int) { v.Counts[what] += n }

// AddViolation adds a violation, and its description unless there are too many.
func (v *Verdict) AddViolation(format string, args ...any) {
	v.Violations++
	if len(v.Messages) < maxMessages {
		v.Messages = append(v.Messages, fmt.Sprintf(format, args...))
	}
}

// Verdicts are the verdicts of all promises, in their order.
type Verdicts []*Verdict

// Err returns nil if no promise is broken or undecided; otherwise an error that names each of them. Untried promises
// are not errors: see Untried.
func (all Verdicts) Err() error {
	var broken []error
	for _, v := range all {
		for _, why := range v.Messages {
			broken = append(broken, fmt.Errorf("%s (%s): %s", v.Promise, v.Title, why))
		}
		if more := v.Violations - len(v.Messages); more > 0 {
			broken = append(broken, fmt.Errorf("%s: and %d more", v.Promise, more))
		}
		if v.Undecided != "" {
			broken = append(broken, fmt.Errorf("%s (%s): undecided: %s", v.Promise, v.Title, v.Undecided))
		}
	}
	return errors.Join(broken...)
}

// Untried returns the promises of which nothing was examined.
func (all Verdicts) Untried() []string {
	var names []string
	for _, v := range all {
		if v.Status() == "untried" {
			names = append(names, v.Promise)
		}
	}
	return names
}

// Of returns the verdict of one promise, or nil.
func (all Verdicts) Of(promise string) *Verdict {
	i := slices.IndexFunc(all, func(v *Verdict) bool { return v.Promise == promise })
	if i < 0 {
		return nil
	}
	return all[i]
}

// String returns a table for people.
func (all Verdicts) String() string {
	var b strings.Builder
	for _, v := range all {
		var counts []string
		for _, what := range slices.Sorted(maps.Keys(v.Counts)) {
			counts = append(counts, fmt.Sprintf("%d %s", v.Counts[what], what))
		}
		fmt.Fprintf(&b, "%-12s %-10s %s: %s\n", v.Promise, v.Status(), v.Title, strings.Join(counts, ", "))
	}
	return b.String()
}
