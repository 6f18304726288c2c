//go:build unix

package bench

import (
	"fmt"
	"math"
	"strings"
)

// drawLatencies draws latency by percentile. The horizontal axis gives each further nine the same width, the vertical
// axis is logarithmic: the tail, which matters, takes most of the chart.
func drawLatencies(svg *strings.Builder, curves []curve) {
	drawText(svg, chartLeft, latencyTop-8, "start", "latency (logarithmic) by percentile")
	low, high, nines := latencyRange(curves)
	place := func(nine, ms float64) (x, y float64) {
		return within(chartLeft, chartRight, nine/nines),
			within(latencyEnd, latencyTop, (math.Log10(ms)-low)/(high-low))
	}
	for decade := low; decade <= high; decade++ {
		_, y := place(0, math.Pow(10, decade))
		drawLine(svg, chartLeft, y, chartRight, y)
		drawText(svg, chartLeft-6, y+4, "end", formatMs(math.Pow(10, decade)))
	}
	for nine := 0.0; nine <= nines; nine++ {
		x, _ := place(nine, 1)
		drawLine(svg, x, latencyTop, x, latencyEnd)
		drawText(svg, x, latencyEnd+18, "middle", percentileName(int(nine)))
	}
	for _, c := range curves {
		var points []string
		for _, p := range latencyPoints(c) {
			x, y := place(p.nine, p.ms)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		}
		drawPath(svg, c, points)
	}
}

// latencyPoint is a latency at the percentile 100 (1 - 10^-nine).
type latencyPoint struct{ nine, ms float64 }

// latencyPoints end at the percentile that the slowest operation stands for.
func latencyPoints(c curve) []latencyPoint {
	histogram, err := c.operation.Latency.DecodeHistogram()
	if err != nil {
		panic(err) // package load has encoded it
	}
	last := math.Log10(float64(c.operation.Count))
	var points []latencyPoint
	for nine := 0.0; nine < last; nine += 0.05 {
		nanos := histogram.ValueAtPercentile(100 * (1 - math.Pow(10, -nine)))
		points = append(points, latencyPoint{nine, math.Max(float64(nanos)/1e6, 1e-6)})
	}
	return append(points, latencyPoint{last, math.Max(c.operation.Latency.MaxMs, 1e-6)})
}

// latencyRange returns the decades of milliseconds and the number of nines that all curves need.
func latencyRange(curves []curve) (low, high, nines float64) {
	low, high, nines = math.Inf(1), math.Inf(-1), 1
	for _, c := range curves {
		for _, p := range latencyPoints(c) {
			low, high = math.Min(low, math.Floor(math.Log10(p.ms))), math.Max(high, math.Ceil(math.Log10(p.ms)))
			nines = math.Max(nines, math.Ceil(p.nine))
		}
	}
	if low >= high { // also without curves
		low, high = -1, 1
	}
	return low, high, nines
}

func percentileName(nine int) string {
	switch nine {
	case 0:
		return "0 %"
	case 1:
		return "90 %"
	case 2:
		return "99 %"
	}
	return "99." + strings.Repeat("9", nine-2) + " %"
}

// drawSeries draws operations per second over time. The last interval of a measurement is left out if the measurement
// ended within it, because it would look like a fall.
func drawSeries(svg *strings.Builder, curves []curve) {
	drawText(svg, chartLeft, seriesTop-8, "start", "operations per second over time")
	rates := make([][]float64, len(curves))
	seconds, highest := 0.0, 0.0
	for i, c := range curves {
		rates[i] = ratesOf(c)
		seconds = math.Max(seconds, float64(len(rates[i]))*c.operation.Series.IntervalSeconds)
		for _, rate := range rates[i] {
			highest = math.Max(highest, rate)
		}
	}
	if seconds == 0 || highest == 0 {
		seconds, highest = 1, 1
	}
	const steps = 4
	for step := range steps + 1 {
		share := float64(step) / steps
		y := within(seriesEnd, seriesTop, share)
		drawLine(svg, chartLeft, y, chartRight, y)
		drawText(svg, chartLeft-6, y+4, "end", formatRate(highest*share))
		drawText(svg, within(chartLeft, chartRight, share), seriesEnd+18, "middle", fmt.Sprintf("%.3g s", seconds*share))
	}
	for i, c := range curves {
		var points []string
		for j, rate := range rates[i] {
			middle := (float64(j) + 0.5) * c.operation.Series.IntervalSeconds
			points = append(points, fmt.Sprintf("%.1f,%.1f", within(chartLeft, chartRight, middle/seconds),
				within(seriesEnd, seriesTop, rate/highest)))
		}
		drawPath(svg, c, points)
	}
}

func ratesOf(c curve) []float64 {
	series := c.operation.Series
	var rates []float64
	for _, units := range series.Units {
		rates = append(rates, float64(units)/series.IntervalSeconds)
	}
	if len(rates) > 1 {
		return rates[:len(rates)-1]
	}
	return rates
}
