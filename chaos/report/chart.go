package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/history"
)

// Sizes of pictures, in their own units.
const (
	width   = 1000
	height  = 140
	laneTop = 18
	buckets = 200
)

// scale turns time into places.
type scale struct{ length time.Duration }

func scaleOf(r Run) scale {
	s := scale{time.Second}
	for i := range r.History.Ops {
		s.length = max(s.length, time.Duration(r.History.Ops[i].Return))
	}
	for _, e := range r.Events {
		s.length = max(s.length, e.At, e.Until)
	}
	return s
}

func (s scale) x(at time.Duration) float64 { return width * float64(at) / float64(s.length) }

func (s scale) bucket(at int64) int {
	return min(int(int64(buckets)*at/int64(s.length)), buckets-1)
}

// bar is one event in its lane.
type bar struct {
	X, Width float64
	Y        int
	Title    string
	Color    string
}

// lanes are the events, one lane for each node.
type lanes struct {
	Names  []laneName
	Bars   []bar
	Height int
}

type laneName struct {
	Name string
	Y    int
}

var colors = []string{"#c0392b", "#2980b9", "#8e44ad", "#d35400", "#16a085", "#7f8c8d", "#2c3e50", "#b7950b"}

func (s scale) lanes(events []Event) lanes {
	var l lanes
	var nodes, kinds []string
	for _, e := range events {
		nodes, kinds = append(nodes, e.Node), append(kinds, e.What)
	}
	slices.Sort(nodes)
	slices.Sort(kinds)
	nodes, kinds = slices.Compact(nodes), slices.Compact(kinds)
	for i, node := range nodes {
		if node == "" {
			node = "all"
		}
		l.Names = append(l.Names, laneName{node, i * laneTop})
	}
	for _, e := range events {
		x, until := s.x(e.At), s.x(max(e.At, e.Until))
		l.Bars = append(l.Bars, bar{
			X: x, Width: max(until-x, 2), Y: slices.Index(nodes, e.Node) * laneTop, Color: colors[slices.Index(kinds, e.What)%len(colors)],
			Title: fmt.Sprintf("%s %s at %v, for %v", e.What, e.Node, e.At.Round(time.Millisecond), max(0, e.Until-e.At).Round(time.Millisecond)),
		})
	}
	l.Height = len(nodes) * laneTop
	return l
}

// chart is a picture of lines over time.
type chart struct {
	Title, Most string
	Lines       []line
}

// line is one series as an SVG path.
type line struct {
	Name, Color, Path string
}

// throughput counts answers by outcome.
func (s scale) throughput(ops []history.Op) chart {
	series := map[history.Outcome][]float64{}
	perSecond := buckets / s.length.Seconds()
	for i := range ops {
		o := &ops[i]
		if o.Kind == history.Change {
			continue
		}
		if series[o.Outcome] == nil {
			series[o.Outcome] = make([]float64, buckets)
		}
		series[o.Outcome][s.bucket(o.Return)] += perSecond
	}
	c := chart{Title: "answers a second"}
	most := 1.0
	for _, one := range series {
		most = max(most, slices.Max(one))
	}
	c.Most = fmt.Sprintf("%.0f", most)
	for _, of := range []struct {
		outcome history.Outcome
		color   string
	}{{history.OK, "#27ae60"}, {history.Refused, "#2980b9"}, {history.Failed, "#7f8c8d"}, {history.Unknown, "#c0392b"}} {
		if series[of.outcome] != nil {
			c.Lines = append(c.Lines, line{string(of.outcome), of.color, path(series[of.outcome], most)})
		}
	}
	return c
}

// latency is how long answers took: the median and the longest of those that came in a while.
func (s scale) latency(ops []history.Op) chart {
	took := make([][]time.Duration, buckets)
	for i := range ops {
		if o := &ops[i]; o.Kind != history.Change {
			at := s.bucket(o.Return)
			took[at] = append(took[at], time.Duration(o.Return-o.Call))
		}
	}
	median, longest := make([]float64, buckets), make([]float64, buckets)
	most := time.Millisecond.Seconds()
	for i, times := range took {
		if len(times) > 0 {
			slices.Sort(times)
			median[i], longest[i] = part(times, 50).Seconds(), times[len(times)-1].Seconds()
			most = max(most, longest[i])
		}
	}
	return chart{
		Title: "seconds to an answer", Most: fmt.Sprintf("%.3f", most),
		Lines: []line{{"longest", "#d35400", path(longest, most)}, {"median", "#27ae60", path(median, most)}},
	}
}

// path draws values from 0 to most.
func path(values []float64, most float64) string {
	var b strings.Builder
	for i, value := range values {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", verb, width*(float64(i)+0.5)/buckets, height-height*value/most)
	}
	return b.String()
}
