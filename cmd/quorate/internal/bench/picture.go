//go:build unix

package bench

import (
	"fmt"
	"html"
	"math"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/internal/load"
)

// The layout of a picture, in pixels.
const (
	pictureWidth = 960
	chartLeft    = 80
	chartRight   = 930
	latencyTop   = 115
	latencyEnd   = 395
	seriesTop    = 470
	seriesEnd    = 690
	tableTop     = 760
	lineHeight   = 20
	// maxCurves bounds the curves of a chart; beyond it whole iterations are drawn only.
	maxCurves = 8
)

type curve struct {
	name      string
	operation load.Operation
	color     string
	dashes    string // distinguishes curves without their color
}

// curveStyles are distinguishable for people who do not see all colors.
var curveStyles = []struct{ color, dashes string }{
	{"#0072b2", ""},
	{"#d55e00", "8 3"},
	{"#009e73", "2 3"},
	{"#cc79a7", "10 3 2 3"},
	{"#000000", "5 5"},
	{"#56b4e9", "14 4"},
	{"#e69f00", "1 5"},
	{"#7f7f7f", "6 2 1 2 1 2"},
}

// drawPicture draws SVG, or HTML if the name of the file ends so. Both are complete in themselves.
func drawPicture(r *Report, name string) []byte {
	if filepath.Ext(name) == ".html" {
		return drawHTML(r)
	}
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + drawSVG(r, true))
}

func drawHTML(r *Report) []byte {
	var page strings.Builder
	title := html.EscapeString(pictureTitle(r))
	fmt.Fprintf(&page, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<title>%s</title>
<style>
body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #999; }
</style>
</head>
<body>
<h1>%s</h1>
%s<table>
<caption>Operations of each measurement</caption>
`, title, title, drawSVG(r, false))
	for i, row := range r.tableRows() {
		cell := `<td>%s</td>`
		if i == 0 {
			cell = `<th scope="col">%s</th>`
		}
		page.WriteString("<tr>")
		for _, text := range row {
			fmt.Fprintf(&page, cell, html.EscapeString(text))
		}
		page.WriteString("</tr>\n")
	}
	page.WriteString("</table>\n</body>\n</html>\n")
	return []byte(page.String())
}

func pictureTitle(r *Report) string {
	loop := "closed loop"
	for _, run := range r.Runs {
		if run.RatePerSecond > 0 {
			loop = fmt.Sprintf("open loop, %g iterations per second", run.RatePerSecond)
		}
	}
	return fmt.Sprintf("quorate cluster bench: workload %s, %s", r.Workload, loop)
}

// drawSVG draws both charts, with a table below them for those who cannot see the charts.
func drawSVG(r *Report, withTable bool) string {
	curves := selectCurves(r)
	height := tableTop
	rows := r.tableRows()
	if withTable {
		height += len(rows) * lineHeight
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" `+
		`aria-labelledby="picture-title picture-text" font-family="sans-serif" font-size="13">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&svg, `<title id="picture-title">%s</title>`+"\n", html.EscapeString(pictureTitle(r)))
	fmt.Fprintf(&svg, `<desc id="picture-text">%s</desc>`+"\n", html.EscapeString(describeCurves(curves)))
	svg.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	drawText(&svg, chartLeft, 30, "start", pictureTitle(r)+" (version "+r.Version+")")
	drawLegend(&svg, curves)
	drawLatencies(&svg, curves)
	drawSeries(&svg, curves)
	if withTable {
		drawTable(&svg, rows)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// selectCurves takes all operations with measurements if they are few, else the first ones that are not steps of a
// whole iteration.
func selectCurves(r *Report) []curve {
	var all, whole []curve
	for _, run := range r.Runs {
		for _, o := range run.Operations {
			if o.Count == 0 {
				continue
			}
			c := curve{name: o.Kind + ", " + run.callersText(), operation: o}
			all = append(all, c)
			if o.Kind == "pair" || o.Kind == "lease" || o.Kind == "event" || run.Read != "" {
				whole = append(whole, c)
			}
		}
	}
	if len(all) > maxCurves {
		all = whole[:min(len(whole), maxCurves)]
	}
	for i := range all {
		all[i].color, all[i].dashes = curveStyles[i].color, curveStyles[i].dashes
	}
	return all
}

func describeCurves(curves []curve) string {
	var text strings.Builder
	text.WriteString("Above, latency by percentile; below, operations per second over time.")
	for _, c := range curves {
		l := c.operation.Latency
		fmt.Fprintf(&text, " %s: %s per second, p50 %s, p99 %s, highest %s.", c.name,
			formatRate(c.operation.UnitsPerSecond), formatMs(l.P50Ms), formatMs(l.P99Ms), formatMs(l.MaxMs))
	}
	return text.String()
}

func drawText(svg *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="%s" xml:space="preserve">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(text))
}

func drawLine(svg *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ccc"/>`+"\n", x1, y1, x2, y2)
}

func drawLegend(svg *strings.Builder, curves []curve) {
	for i, c := range curves {
		x, y := float64(chartLeft+i%4*220), float64(50+i/4*18)
		fmt.Fprintf(svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+
			"\n", x, y-4, x+30, y-4, c.color, c.dashes)
		drawText(svg, x+36, y, "start", c.name)
	}
}

func drawTable(svg *strings.Builder, rows [][]string) {
	for i, row := range rows {
		y := float64(tableTop + i*lineHeight)
		for j, text := range row {
			anchor, x := "end", float64(chartLeft+60+j*88)
			if j == 1 {
				anchor, x = "start", x-70
			}
			drawText(svg, x, y, anchor, text)
		}
	}
}

func drawPath(svg *strings.Builder, c curve, points []string) {
	if len(points) > 0 {
		fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s">`+
			`<title>%s</title></polyline>`+"\n", strings.Join(points, " "), c.color, c.dashes, html.EscapeString(c.name))
	}
}

// within places a share of a range on an axis.
func within(from, to, share float64) float64 { return from + (to-from)*math.Min(math.Max(share, 0), 1) }
