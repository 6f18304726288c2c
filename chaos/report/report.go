// Package report shows one run of chaos as a page: faults over throughput and latency, a verdict for each promise, counts.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
)

// Event is something that was done, to break something or to heal it. Times are since the recorder of the history began.
type Event struct {
	At   time.Duration
	What string
	// Node is whom it struck; empty for the cluster.
	Node string
}

// Span is one fault from its beginning to its end, or the healing.
type Span struct {
	Name        string
	From, Until time.Duration
}

// Run is everything that there is to say of one run.
type Run struct {
	Seed     uint64
	Nodes    int
	Scenario string
	// Faults counts them by kind, Again is the command that plays the run again.
	Faults, Again string
	// Events and Spans may be in any order.
	Events   []Event
	Spans    []Span
	History  history.History
	Verdicts check.Verdicts
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Name is the file that Write makes.
const Name = "report.html"

// Write makes the page in a folder, which it makes too if need be. The page refers to nothing outside of it, except pictures
// of porcupine that lie beside it.
func Write(dir string, r Run) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "linearizable-*.html"))
	if err != nil {
		return fmt.Errorf("look for pictures: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, viewOf(r, pictures)); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, Name), out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// view is what the page shows.
type view struct {
	Run

	Length   string
	Charts   []chart
	Lanes    lanes
	Shades   []bar
	Ticks    []tick
	Counts   []count
	Pictures []string
}

// count is how the calls of one kind ended.
type count struct {
	Kind                             history.Kind
	OK, Refused, Failed, Unknown     int
	Median, NinetyNinth, LongestCall time.Duration
}

func viewOf(r Run, pictures []string) view {
	v := view{Run: r, Counts: countsOf(r.History.Ops)}
	for _, path := range pictures {
		v.Pictures = append(v.Pictures, filepath.Base(path))
	}
	slices.SortStableFunc(v.Events, func(a, b Event) int { return int(a.At - b.At) })
	slices.SortStableFunc(v.Spans, func(a, b Span) int { return int(a.From - b.From) })
	scale := scaleOf(r)
	v.Length = scale.length.Round(time.Millisecond).String()
	v.Ticks = scale.ticks()
	v.Lanes = scale.lanes(v.Spans, v.Events)
	v.Shades = v.Lanes.Bars[:len(v.Spans)]
	v.Charts = []chart{scale.throughput(r.History.Ops), scale.latency(r.History.Ops)}
	return v
}

func countsOf(ops []history.Op) []count {
	var all []count
	took := map[history.Kind][]time.Duration{}
	for i := range ops {
		o := &ops[i]
		at := slices.IndexFunc(all, func(c count) bool { return c.Kind == o.Kind })
		if at < 0 {
			at, all = len(all), append(all, count{Kind: o.Kind})
		}
		switch o.Outcome {
		case history.OK:
			all[at].OK++
		case history.Refused:
			all[at].Refused++
		case history.Failed:
			all[at].Failed++
		case history.Unknown:
			all[at].Unknown++
		}
		took[o.Kind] = append(took[o.Kind], time.Duration(o.Return-o.Call))
	}
	for i := range all {
		times := took[all[i].Kind]
		slices.Sort(times)
		all[i].Median, all[i].NinetyNinth, all[i].LongestCall = part(times, 50), part(times, 99), times[len(times)-1].Round(time.Microsecond)
	}
	slices.SortFunc(all, func(a, b count) int { return b.total() - a.total() })
	return all
}

func (c count) total() int { return c.OK + c.Refused + c.Failed + c.Unknown }

// part is what so many in a hundred do not exceed; times are sorted and not empty.
func part(times []time.Duration, hundredths int) time.Duration {
	return times[(len(times)-1)*hundredths/100].Round(time.Microsecond)
}
