package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/history"
)

// chartHeight is the height of charts, bucketCount the number of points of a line.
const (
	chartHeight = 140
	bucketCount = 200
)

func (s timeScale) bucketAt(at int64) int {
	return min(int(int64(bucketCount)*at/int64(s.length)), bucketCount-1)
}

// chart shows lines over time. Most is the value at its top, Half that in the middle.
type chart struct {
	Title, Most, Half string
	Lines             []chartLine
}

type chartLine struct {
	Name, Color, Path string
}

func (s timeScale) throughputChart(ops []history.Op) chart {
	series := map[history.Outcome][]float64{}
	perSecond := bucketCount / s.length.Seconds()
	for i := range ops {
		o := &ops[i]
		if o.IsWatched() {
			continue
		}
		if series[o.Outcome] == nil {
			series[o.Outcome] = make([]float64, bucketCount)
		}
		series[o.Outcome][s.bucketAt(o.Return)] += perSecond
	}
	c := chart{Title: "answers a second"}
	most := 1.0
	for _, one := range series {
		most = max(most, slices.Max(one))
	}
	c.Most, c.Half = fmt.Sprintf("%.0f", most), fmt.Sprintf("%.0f", most/2)
	for _, line := range []struct {
		outcome history.Outcome
		color   string
	}{
		{history.OK, "#27ae60"},
		{history.Refused, "#2980b9"},
		{history.Failed, "#7f8c8d"},
		{history.Unknown, "#c0392b"},
	} {
		if series[line.outcome] != nil {
			c.Lines = append(c.Lines, chartLine{string(line.outcome), line.color, svgPath(series[line.outcome], most)})
		}
	}
	return c
}

func (s timeScale) latencyChart(ops []history.Op) chart {
	took := make([][]time.Duration, bucketCount)
	for i := range ops {
		if o := &ops[i]; !o.IsWatched() {
			at := s.bucketAt(o.Return)
			took[at] = append(took[at], time.Duration(o.Return-o.Call))
		}
	}
	median, longest := make([]float64, bucketCount), make([]float64, bucketCount)
	most := time.Millisecond.Seconds()
	for i, times := range took {
		if len(times) > 0 {
			slices.Sort(times)
			median[i], longest[i] = percentile(times, 50).Seconds(), times[len(times)-1].Seconds()
			most = max(most, longest[i])
		}
	}
	return chart{
		Title: "seconds to an answer", Most: fmt.Sprintf("%.2f", most), Half: fmt.Sprintf("%.2f", most/2),
		Lines: []chartLine{
			{"longest", "#d35400", svgPath(longest, most)},
			{"median", "#27ae60", svgPath(median, most)},
		},
	}
}

func svgPath(values []float64, most float64) string {
	var b strings.Builder
	for i, value := range values {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", verb, gutterWidth+(chartWidth-gutterWidth)*(float64(i)+0.5)/bucketCount,
			chartHeight-chartHeight*value/most)
	}
	return b.String()
}
