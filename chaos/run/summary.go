package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/faults"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/runner"
)

// runSummary is the result of all runs.
type runSummary struct {
	rows       []string
	faults     faults.Counts
	operations int
	runs       int
	failed     []string
	// lastNotPlayed is true if the last run could not be played.
	lastNotPlayed bool
}

func newSummary() *runSummary { return &runSummary{faults: faults.Counts{}} }

// addRun adds a run, or why it could not be played. It deletes the large history of a run that passed, with the files
// beside it; the report remains.
func (s *runSummary) addRun(r *runner.Result, failure error) error {
	s.runs++
	s.operations += len(r.History.Ops)
	s.faults.Add(r.Faults)
	s.lastNotPlayed = failure != nil
	word := "passed"
	if wrong := append(r.Failures, r.Undecided...); s.lastNotPlayed || len(wrong) > 0 {
		if s.lastNotPlayed {
			wrong = append(wrong, "could not be played")
		}
		word = "**" + strings.NewReplacer("\n", " ", "|", "/").Replace(strings.Join(wrong, "; ")) + "**"
		s.failed = append(s.failed, r.Config.Command())
	}
	name := filepath.Base(r.Config.Dir)
	s.rows = append(s.rows, fmt.Sprintf("| [%s](%s/report.html) | %d | %d | %d | `%s` | %s |\n",
		name, name, r.Config.Size, len(r.History.Ops), r.Faults.All(), r.Config.Command(), word))
	if word != "passed" {
		return nil
	}
	history := r.Config.History()
	failed := errors.Join(os.Remove(history), os.Remove(check.FinalsBeside(history)))
	if err := os.Remove(guarded.EvidenceBeside(history)); !errors.Is(err, fs.ErrNotExist) { // open clusters have none
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *runSummary) writePage(dir string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n", s, cmp.Or(s.faults.String(), "No faults"))
	b.WriteString("| run | nodes | operations | faults | again | verdict |\n|---|---|---|---|---|---|\n")
	for _, row := range s.rows {
		b.WriteString(row)
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.md"), []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the page of all runs: %w", err)
	}
	return nil
}

// String returns one line for people.
func (s *runSummary) String() string {
	verdict := "all promises kept"
	if s.runs == 0 {
		verdict = "nothing is known"
	} else if len(s.failed) > 0 {
		verdict = fmt.Sprintf("%d of the runs did not pass", len(s.failed))
	}
	return fmt.Sprintf("runs: %d, operations: %d, faults: %d; %s", s.runs, s.operations, s.faults.All(), verdict)
}

// failureError names the runs that did not pass, each by the command that repeats it. No runs at all is an error too.
func (s *runSummary) failureError() error {
	switch {
	case s.runs == 0:
		return errors.New("nothing was played")
	case len(s.failed) == 0:
		return nil
	}
	return fmt.Errorf("%d of %d runs did not pass:\n%s", len(s.failed), s.runs, strings.Join(s.failed, "\n"))
}
