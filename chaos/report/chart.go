package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/history"
)

// Charts are so high, and lines have so many points.
const (
	height  = 140
	buckets = 200
)

func (s scale) bucket(at int64) int {
	return min(int(int64(buckets)*at/int64(s.length)), buckets-1)
}

// chart is a picture of lines over time. Most is the value at its top, Half that in the middle.
type chart struct {
	Title, Most, Half string
	Lines             []line
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
	c.Most, c.Half = fmt.Sprintf("%.0f", most), fmt.Sprintf("%.0f", most/2)
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
		Title: "seconds to an answer", Most: fmt.Sprintf("%.2f", most), Half: fmt.Sprintf("%.2f", most/2),
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
		fmt.Fprintf(&b, "%s%.1f %.1f", verb, gutter+(width-gutter)*(float64(i)+0.5)/buckets, height-height*value/most)
	}
	return b.String()
}
