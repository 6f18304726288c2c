package report

import (
	"fmt"
	"slices"
	"time"
)

// Sizes of pictures in their own units. Lane names stand left of gutterWidth, times in axisHeight below.
const (
	chartWidth  = 1000
	gutterWidth = 120
	laneHeight  = 18
	axisHeight  = 16
	// maxTicks bounds the number of times below a picture.
	maxTicks = 12
)

// timeScale maps times to positions.
type timeScale struct{ length time.Duration }

func newTimeScale(r Run) timeScale {
	s := timeScale{time.Second}
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

func (s timeScale) xAt(at time.Duration) float64 {
	return gutterWidth + (chartWidth-gutterWidth)*float64(min(max(at, 0), s.length))/float64(s.length)
}

type timeTick struct {
	X    float64
	Text string
}

func (s timeScale) timeTicks() (list []timeTick) {
	steps := []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600}
	i := slices.IndexFunc(steps, func(step time.Duration) bool { return s.length/(step*time.Second) < maxTicks })
	if i < 0 {
		i = len(steps) - 1
	}
	for at := time.Duration(0); at <= s.length; at += steps[i] * time.Second {
		list = append(list, timeTick{s.xAt(at), at.String()})
	}
	return list
}

type timeBar struct {
	X, Width float64
	Y        int
	Title    string
	Color    string
}

type laneLabel struct {
	Name string
	Y    int
}

// laneChart has a lane for each kind of fault, and below them one for each node with its events.
type laneChart struct {
	Rows   []laneLabel
	Bars   []timeBar
	Bottom int
}

var laneColors = []string{"#c0392b", "#2980b9", "#8e44ad", "#d35400", "#16a085", "#7f8c8d", "#2c3e50", "#b7950b"}

// drawLanes needs the spans sorted by their beginning.
func (s timeScale) drawLanes(spans []Span, events []Event) laneChart {
	var l laneChart
	for _, span := range spans {
		y := l.laneFor(span.Name)
		l.Bars = append(l.Bars, timeBar{
			X: s.xAt(span.From), Width: max(s.xAt(span.Until)-s.xAt(span.From), 2), Y: y,
			Color: laneColors[y/laneHeight%len(laneColors)],
			Title: fmt.Sprintf("%s at %v, for %v", span.Name, roundTime(span.From), roundTime(span.Until-span.From)),
		})
	}
	var nodes []string
	for _, e := range events {
		nodes = append(nodes, e.Node)
	}
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		l.laneFor(laneName(node))
	}
	for _, e := range events {
		l.Bars = append(l.Bars, timeBar{
			X: s.xAt(e.At), Width: 2, Y: l.laneFor(laneName(e.Node)), Color: "#2c3e50",
			Title: fmt.Sprintf("%s at %v: %s", laneName(e.Node), roundTime(e.At), e.What),
		})
	}
	l.Bottom = len(l.Rows) * laneHeight
	return l
}

// Full returns the height of the picture, times included.
func (l laneChart) Full() int { return l.Bottom + axisHeight + 2 }

func (l *laneChart) laneFor(name string) int {
	i := slices.IndexFunc(l.Rows, func(r laneLabel) bool { return r.Name == name })
	if i < 0 {
		i = len(l.Rows)
		l.Rows = append(l.Rows, laneLabel{name, i * laneHeight})
	}
	return l.Rows[i].Y
}

func laneName(node string) string {
	if node == "" {
		return "cluster"
	}
	return node
}

func roundTime(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
