package report

import (
	"fmt"
	"slices"
	"time"
)

// Sizes of pictures, in their own units. Names of lanes stand left of gutter; times stand below, axis high.
const (
	width  = 1000
	gutter = 120
	lane   = 18
	axis   = 16
	// mostTicks is how many times are written below a picture.
	mostTicks = 12
)

// scale turns time into places.
type scale struct{ length time.Duration }

func scaleOf(r Run) scale {
	s := scale{time.Second}
	for i := range r.History.Ops {
		s.length = max(s.length, time.Duration(r.History.Ops[i].Return))
	}
	for _, e := range r.Events {
		s.length = max(s.length, e.At)
	}
	for _, span := range r.Spans {
		s.length = max(s.length, span.Until)
	}
	return s
}

func (s scale) x(at time.Duration) float64 {
	return gutter + (width-gutter)*float64(min(max(at, 0), s.length))/float64(s.length)
}

// tick is a time that is written below a picture.
type tick struct {
	X    float64
	Text string
}

// ticks are at round times.
func (s scale) ticks() (list []tick) {
	steps := []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600}
	i := slices.IndexFunc(steps, func(step time.Duration) bool { return s.length/(step*time.Second) < mostTicks })
	if i < 0 {
		i = len(steps) - 1
	}
	for at := time.Duration(0); at <= s.length; at += steps[i] * time.Second {
		list = append(list, tick{s.x(at), at.String()})
	}
	return list
}

// bar is a span, or an instant, in its lane.
type bar struct {
	X, Width float64
	Y        int
	Title    string
	Color    string
}

// row names a lane.
type row struct {
	Name string
	Y    int
}

// lanes are what went wrong, a lane for each kind of fault, and below what was done, a lane for each node.
type lanes struct {
	Rows   []row
	Bars   []bar
	Bottom int
}

var colors = []string{"#c0392b", "#2980b9", "#8e44ad", "#d35400", "#16a085", "#7f8c8d", "#2c3e50", "#b7950b"}

// lanes draws spans, which are in the order in which they began, and events.
func (s scale) lanes(spans []Span, events []Event) lanes {
	var l lanes
	for _, span := range spans {
		y := l.row(span.Name)
		l.Bars = append(l.Bars, bar{
			X: s.x(span.From), Width: max(s.x(span.Until)-s.x(span.From), 2), Y: y, Color: colors[y/lane%len(colors)],
			Title: fmt.Sprintf("%s at %v, for %v", span.Name, rounded(span.From), rounded(span.Until-span.From)),
		})
	}
	var nodes []string
	for _, e := range events {
		nodes = append(nodes, e.Node)
	}
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		l.row(nameOf(node))
	}
	for _, e := range events {
		l.Bars = append(l.Bars, bar{
			X: s.x(e.At), Width: 2, Y: l.row(nameOf(e.Node)), Color: "#2c3e50", Title: fmt.Sprintf("%s at %v: %s", nameOf(e.Node), rounded(e.At), e.What),
		})
	}
	l.Bottom = len(l.Rows) * lane
	return l
}

// Full is how high the picture is with its times.
func (l lanes) Full() int { return l.Bottom + axis + 2 }

// row is where a lane is; it is made if there is none of that name.
func (l *lanes) row(name string) int {
	i := slices.IndexFunc(l.Rows, func(r row) bool { return r.Name == name })
	if i < 0 {
		i = len(l.Rows)
		l.Rows = append(l.Rows, row{name, i * lane})
	}
	return l.Rows[i].Y
}

// nameOf is the lane of a node, or of the whole cluster.
func nameOf(node string) string {
	if node == "" {
		return "cluster"
	}
	return node
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
