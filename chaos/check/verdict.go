// Package check judges what callers of a cluster saw: the promises P1 to P10 of docs/consistency.md, linearizability and
// liveness, from a history and from the states that all nodes have in the end.
//
// It never calls what a correct cluster may do a violation. Where the history leaves something open (an answer was lost, an
// index is not known, a lease ended unseen) a check takes what excuses the cluster most, so each violation is one in every
// reading of the history.
package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxMessages is how many violations of a promise are kept in words.
const maxMessages = 20

// Live is the promise that depends on how quick a machine is.
const Live = "live"

// Verdict is what became of one promise.
type Verdict struct {
	// Promise is "P1" to "P10", "linearizable" or Live.
	Promise string `json:"promise"`
	Title   string `json:"title"`
	// Counts counts what was examined, by what it is. A promise of which nothing was seen is not kept, it is untried.
	Counts map[string]int `json:"saw"`
	// Messages are violations, at most 20 in words; Violations is how many there were.
	Messages   []string `json:"broken,omitempty"`
	Violations int      `json:"violations"`
	// Undecided says why the check came to no end; then it is no pass.
	Undecided string `json:"undecided,omitempty"`
}

// Status is the verdict in a word: kept, broken, undecided, or untried if nothing was seen.
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

// Examined is how much was seen in all.
func (v *Verdict) Examined() int {
	all := 0
	for _, n := range v.Counts {
		all += n
	}
	return all
}

func (v *Verdict) count(what string, n int) { v.Counts[what] += n }

func (v *Verdict) addViolation(format string, args ...any) {
	v.Violations++
	if len(v.Messages) < maxMessages {
		v.Messages = append(v.Messages, fmt.Sprintf(format, args...))
	}
}

// Verdicts are those of all promises, in their order.
type Verdicts []*Verdict

// Err is nil if no promise is broken or undecided; otherwise it names every such promise. Untried promises are no error:
// see Untried.
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

// Untried are the promises of which nothing was seen.
func (all Verdicts) Untried() []string {
	var names []string
	for _, v := range all {
		if v.Status() == "untried" {
			names = append(names, v.Promise)
		}
	}
	return names
}

// Of is the verdict of one promise, or nil.
func (all Verdicts) Of(promise string) *Verdict {
	i := slices.IndexFunc(all, func(v *Verdict) bool { return v.Promise == promise })
	if i < 0 {
		return nil
	}
	return all[i]
}

// String is a table for people.
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
