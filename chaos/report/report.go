// Package report writes a page about one run of chaos: faults, throughput, latency, verdicts and counts.
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

// Event is something that was done to break or heal the cluster. Times count from the beginning of the history.
type Event struct {
	At   time.Duration
	What string
	// Node is the node it was done to; empty for the cluster.
	Node string
}

// Span is the time of one fault, or of the healing.
type Span struct {
	Name        string
	From, Until time.Duration
}

// Run is all data of one run.
type Run struct {
	Seed     uint64
	Nodes    int
	Scenario string
	// Faults counts the faults by kind. Again is the command that repeats the run.
	Faults, Again string
	// Events and Spans may be in any order.
	Events   []Event
	Spans    []Span
	History  history.History
	Verdicts check.Verdicts
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Name is the name of the file that Write writes.
const Name = "report.html"

// Write writes the page to a folder, which it creates if necessary. The page refers to no other files except pictures
// of porcupine in the same folder.
func Write(dir string, r Run) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "linearizable-*.html"))
	if err != nil {
		return fmt.Errorf("look for pictures: %w", err)
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, newPageView(r, pictures)); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, Name), out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type pageView struct {
	Run

	Length   string
	Charts   []chart
	Lanes    laneChart
	Shades   []timeBar
	Ticks    []timeTick
	Counts   []callCounts
	Pictures []string
}

type callCounts struct {
	Kind                             history.Kind
	OK, Refused, Failed, Unknown     int
	Median, NinetyNinth, LongestCall time.Duration
}

func newPageView(r Run, pictures []string) pageView {
	v := pageView{Run: r, Counts: countsOf(r.History.Ops)}
	for _, path := range pictures {
		v.Pictures = append(v.Pictures, filepath.Base(path))
	}
	slices.SortStableFunc(v.Events, func(a, b Event) int { return int(a.At - b.At) })
	slices.SortStableFunc(v.Spans, func(a, b Span) int { return int(a.From - b.From) })
	scale := newTimeScale(r)
	v.Length = scale.length.Round(time.Millisecond).String()
	v.Ticks = scale.timeTicks()
	v.Lanes = scale.drawLanes(v.Spans, v.Events)
	v.Shades = v.Lanes.Bars[:len(v.Spans)]
	v.Charts = []chart{scale.throughputChart(r.History.Ops), scale.latencyChart(r.History.Ops)}
	return v
}

func countsOf(ops []history.Op) []callCounts {
	var all []callCounts
	took := map[history.Kind][]time.Duration{}
	for i := range ops {
		o := &ops[i]
		at := slices.IndexFunc(all, func(c callCounts) bool { return c.Kind == o.Kind })
		if at < 0 {
			at, all = len(all), append(all, callCounts{Kind: o.Kind})
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
		all[i].Median, all[i].NinetyNinth, all[i].LongestCall = percentile(times, 50), percentile(times,
			99), times[len(times)-1].Round(time.Microsecond)
	}
	slices.SortFunc(all, func(a, b callCounts) int { return b.totalCalls() - a.totalCalls() })
	return all
}

func (c callCounts) totalCalls() int { return c.OK + c.Refused + c.Failed + c.Unknown }

// percentile returns a percentile of sorted times. There must be at least one.
func percentile(times []time.Duration, hundredths int) time.Duration {
	return times[(len(times)-1)*hundredths/100].Round(time.Microsecond)
}
