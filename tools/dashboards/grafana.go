package main

import (
	"fmt"
	"strings"
)

// schemaVersion is that of Grafana 12 and 13. Older ones read the dashboards too: nothing newer is used.
const schemaVersion = 42

type board struct {
	title, about string
	// hasTrees adds the variable tree.
	hasTrees bool
	rows     []row
}

type row struct {
	title  string
	panels []panel
}

// Kinds of panels.
const (
	graph = "timeseries"
	stat  = "stat"
	bars  = "bargauge"
	table = "table"
)

// panel is one panel. In its queries "{$" begins a selector that chooses the clusters, "{$T" one that chooses trees
// too.
type panel struct {
	kind, title, about, unit string
	queries                  []query
	// steps colour values from these on; those below the first are green, or without steps not coloured.
	steps []threshold
	// stacked graphs add their series up.
	stacked bool
	// words replace values.
	words map[string]string
}

type query struct{ expr, legend string }

type threshold struct {
	from  float64
	color string
}

// warn and alarm are the steps of a value that should be small, low those of one that should be large.
func warn(from, alarm float64) []threshold { return []threshold{{from, "orange"}, {alarm, "red"}} }

func alarm(from float64) []threshold { return []threshold{{from, "red"}} }

func low(orangeFrom, greenFrom float64) []threshold {
	return []threshold{{lowest, "red"}, {orangeFrom, "orange"}, {greenFrom, "green"}}
}

// lowest is the value of a step that colours everything below the next one.
const lowest = -1e18

type object = map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

// dashboard is a board as Grafana imports it.
func (b board) dashboard(name string) object {
	return object{
		"uid": "quorate-" + name, "title": b.title, "description": b.about, "tags": []string{"quorate"},
		"schemaVersion": schemaVersion, "version": 1, "editable": true, "graphTooltip": 1, "refresh": "30s",
		"time": object{"from": "now-3h", "to": "now"}, "timezone": "browser",
		"annotations": object{"list": []object{}},
		"links": []object{{
			"type": "dashboards", "title": "Quorate", "tags": []string{"quorate"}, "asDropdown": true, "includeVars": true,
			"keepTime": true, "icon": "external link", "targetBlank": false, "tooltip": "", "url": "",
		}},
		"templating": object{"list": b.variables()}, "panels": b.panels(),
	}
}

func (b board) variables() []object {
	list := []object{
		{
			"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "refresh": 1,
			"hide": 0, "includeAll": false, "multi": false, "options": []object{}, "regex": "",
		},
		labelVariable("cluster", "Cluster", "label_values(quorate_build_info, cluster)"),
	}
	if b.hasTrees {
		list = append(list,
			labelVariable("tree", "Tree", `label_values(quorate_held_claims{cluster=~"$cluster"}, tree)`))
	}
	return list
}

func labelVariable(name, label, values string) object {
	return object{
		"type": "query", "name": name, "label": label, "datasource": source, "definition": values,
		"query": object{"query": values, "refId": "StandardVariableQuery"}, "refresh": 2, "sort": 1,
		"includeAll": true, "allValue": ".*", "multi": true, "hide": 0, "options": []object{}, "regex": "",
		"current": object{"text": []string{"All"}, "value": []string{"$__all"}},
	}
}

// Sizes in Grafana's grid, which is 24 wide.
const (
	gridWidth              = 24
	graphWidth, statWidth  = 8, 4
	graphHeight, statHeigh = 8, 4
)

// panels lays the rows out, each panel to the right of the one before while there is space.
func (b board) panels() []object {
	var list []object
	id, y := 1, 0
	for _, r := range b.rows {
		list = append(list, object{
			"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": gridWidth, "h": 1},
		})
		id++
		y++
		x, height := 0, 0
		for _, p := range r.panels {
			w, h := p.size()
			if x+w > gridWidth || height != 0 && h != height {
				x, y = 0, y+height
			}
			height = h
			list = append(list, p.panel(id, object{"x": x, "y": y, "w": w, "h": h}))
			id++
			x += w
		}
		y += height
	}
	return list
}

func (p panel) size() (w, h int) {
	switch p.kind {
	case stat:
		return statWidth, statHeigh
	case table, bars:
		return gridWidth / 2, graphHeight
	default:
		return graphWidth, graphHeight
	}
}

func (p panel) panel(id int, at object) object {
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": source, "gridPos": at,
		"targets": p.targets(), "options": p.options(),
		"fieldConfig": object{"defaults": p.defaults(), "overrides": []object{}},
	}
}

func (p panel) targets() []object {
	var list []object
	for i, q := range p.queries {
		expr := strings.ReplaceAll(q.expr, "{$T", `{cluster=~"$cluster", tree=~"$tree"`)
		expr = strings.ReplaceAll(expr, "{$", `{cluster=~"$cluster"`)
		target := object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": expr, "legendFormat": q.legend,
			"editorMode": "code", "range": p.kind == graph, "instant": p.kind != graph,
		}
		if p.kind == table {
			target["format"] = "table"
		}
		list = append(list, target)
	}
	return list
}

func (p panel) options() object {
	reduce := object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}
	switch p.kind {
	case stat:
		return object{
			"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
			"reduceOptions": reduce, "wideLayout": true,
		}
	case bars:
		return object{
			"displayMode": "basic", "orientation": "horizontal", "showUnfilled": true, "valueMode": "color",
			"minVizHeight": 10, "minVizWidth": 0, "namePlacement": "auto", "sizing": "auto", "reduceOptions": reduce,
		}
	case table:
		return object{"showHeader": true, "cellHeight": "sm"}
	default:
		return object{
			"legend":  object{"showLegend": true, "displayMode": "list", "placement": "bottom", "calcs": []string{}},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	}
}

func (p panel) defaults() object {
	d := object{"unit": p.unit, "mappings": p.mappings(), "thresholds": p.thresholds()}
	if p.kind == bars {
		d["min"], d["max"] = 0, 1
	}
	if len(p.steps) == 0 {
		d["color"] = object{"mode": "palette-classic"}
	} else if p.kind != graph {
		d["color"] = object{"mode": "thresholds"}
	}
	if p.kind == graph {
		d["custom"] = p.drawing()
	}
	return d
}

func (p panel) mappings() []object {
	if len(p.words) == 0 {
		return []object{}
	}
	options := object{}
	for value, text := range p.words {
		options[value] = object{"text": text}
	}
	return []object{{"type": "value", "options": options}}
}

func (p panel) thresholds() object {
	steps := []object{{"color": "green", "value": nil}}
	for _, s := range p.steps {
		if s.from == lowest {
			steps = []object{{"color": s.color, "value": nil}}
			continue
		}
		steps = append(steps, object{"color": s.color, "value": s.from})
	}
	return object{"mode": "absolute", "steps": steps}
}

func (p panel) drawing() object {
	custom := object{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false,
		"thresholdsStyle": object{"mode": "off"}, "stacking": object{"mode": "none", "group": "A"},
	}
	if p.stacked {
		custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 30
	}
	if len(p.steps) > 0 {
		custom["thresholdsStyle"] = object{"mode": "dashed"}
	}
	return custom
}

func one(expr, legend string) []query { return []query{{expr, legend}} }

// quantiles are queries for the shares of a histogram, which rates gives by le and other labels.
func quantiles(rates, legend string, shares ...float64) []query {
	var list []query
	for _, share := range shares {
		list = append(list, query{
			fmt.Sprintf("histogram_quantile(%g, %s)", share, rates), fmt.Sprintf("%s %g %%", legend, 100*share),
		})
	}
	return list
}

// sumRate and its siblings are queries for what grows: per second, or within the interval of a point.
func sumRate(labels, counter string) string { return aggregate("sum", labels, "rate", counter) }

func maxRate(labels, counter string) string { return aggregate("max", labels, "rate", counter) }

func sumIncrease(labels, counter string) string { return aggregate("sum", labels, "increase", counter) }

func aggregate(operator, labels, function, counter string) string {
	return fmt.Sprintf("%s by (%s) (%s(%s[$__rate_interval]))", operator, labels, function, counter)
}
