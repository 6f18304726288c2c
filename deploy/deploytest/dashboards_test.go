package deploytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dashboards are the names of the files in deploy/grafana.
var dashboards = []string{"cluster", "ledger", "leases"}

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []dashboardPanel
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Datasource             struct{ UID string }
		}
	}
}

type dashboardPanel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []struct{ Color string } }
		}
	}
}

func readDashboard(t *testing.T, name string) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(readFile(t, "deploy", "grafana", name+".json")), &d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func eachQuery(t *testing.T, f func(what, expression string)) {
	t.Helper()
	queries := 0
	for _, name := range dashboards {
		for _, panel := range readDashboard(t, name).Panels {
			for _, target := range panel.Targets {
				queries++
				f(name+", "+panel.Title, target.Expr)
			}
		}
	}
	if queries < 100 {
		t.Fatalf("only %d queries were read", queries)
	}
}

// eachVariable calls f with a query for the values of each variable that has them from Prometheus.
func eachVariable(t *testing.T, f func(what, query string)) {
	t.Helper()
	for _, name := range dashboards {
		for _, v := range readDashboard(t, name).Templating.List {
			if v.Type != "query" {
				continue
			}
			values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
			if values == nil {
				t.Fatalf("%s has the variable %s of %q", name, v.Name, v.Definition)
			}
			f(fmt.Sprintf("%s, variable %s", name, v.Name), fmt.Sprintf("count by (%s) (%s)", values[2], values[1]))
		}
	}
}

// TestDashboardsAreComplete: Grafana can import the files, and each panel says what it shows, in which unit.
func TestDashboardsAreComplete(t *testing.T) {
	uids := map[string]bool{}
	for _, name := range dashboards {
		d := readDashboard(t, name)
		if d.SchemaVersion != 42 || d.Title == "" || d.UID == "" || uids[d.UID] {
			t.Errorf("%s: schema %d, title %q, uid %q", name, d.SchemaVersion, d.Title, d.UID)
		}
		uids[d.UID] = true
		variables := map[string]string{}
		for _, v := range d.Templating.List {
			variables[v.Name] = v.Type
		}
		if variables["datasource"] != "datasource" || variables["cluster"] != "query" {
			t.Errorf("%s has variables %v", name, variables)
		}
		ids, places := map[int]bool{}, map[[2]int]bool{}
		for _, p := range d.Panels {
			at := [2]int{p.GridPos.X, p.GridPos.Y}
			if ids[p.ID] || places[at] || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 {
				t.Errorf("%s, %s: id %d at %+v", name, p.Title, p.ID, p.GridPos)
			}
			ids[p.ID], places[at] = true, true
			if p.Type != "row" {
				checkPanel(t, name, p)
			}
		}
	}
}

func checkPanel(t *testing.T, name string, p dashboardPanel) {
	t.Helper()
	hasUnit := p.FieldConfig.Defaults.Unit != "" || p.Type == "table" || p.Title == "Leader"
	if p.Title == "" || len(p.Description) < 4 || !hasUnit || len(p.Targets) == 0 ||
		len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 {
		t.Errorf("%s: %+v has no title, description, unit, query or thresholds", name, p)
	}
	for _, target := range p.Targets {
		if target.Datasource.UID != "${datasource}" || target.LegendFormat == "" && p.Type != "table" {
			t.Errorf("%s, %s: %+v has no data source or legend", name, p.Title, target)
		}
	}
}

// TestDashboardsUseExistingMetrics: each query names metrics and labels that docs/metrics.md has.
func TestDashboardsUseExistingMetrics(t *testing.T) {
	known := pageMetrics(t)
	eachQuery(t, func(what, expression string) { checkNames(t, known, what, expression) })
}

// TestDashboardsKeepClustersApart: each metric is chosen by cluster, and queries that merge series do so by cluster.
func TestDashboardsKeepClustersApart(t *testing.T) {
	eachQuery(t, func(what, expression string) {
		chosen := strings.Count(expression, `{cluster=~"$cluster"`)
		if names := namesIn(expression); len(names) != chosen {
			t.Errorf("%s: %d of %v are chosen by cluster: %s", what, chosen, names, expression)
		}
		if all, apart := aggregation.FindAllString(expression, -1), byCluster.FindAllString(expression, -1); len(all) == 0 ||
			len(all) != len(apart) {
			t.Errorf("%s merges clusters, or shows each member's ledger: %s", what, expression)
		}
	})
}

// TestDashboardsTakeTheMaximumOfTheLedger: all members report the same ledger, so a sum over members counts it several
// times. The operator next to a metric of the ledger is max.
func TestDashboardsTakeTheMaximumOfTheLedger(t *testing.T) {
	shared := sharedMetrics(t)
	next := regexp.MustCompile(`\b(max|min|sum|count) by \([^)]*\) *\((?:(?:rate|increase)\()?(quorate_\w+)`)
	seen := 0
	eachQuery(t, func(what, expression string) {
		maxed := map[string]int{}
		for _, m := range next.FindAllStringSubmatch(expression, -1) {
			if m[1] == "max" {
				maxed[m[2]]++
			}
		}
		for _, name := range namesIn(expression) {
			if !shared[name] {
				continue
			}
			seen++
			if maxed[name]--; maxed[name] < 0 {
				t.Errorf("%s does not take the maximum of %s over members: %s", what, name, expression)
			}
		}
	})
	if seen < 30 {
		t.Errorf("only %d uses of the ledger's metrics were seen", seen)
	}
}

// sharedMetrics are those that all members report alike: of the sections about the ledger and the chosen nodes, and
// those whose row says so.
func sharedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	shared := map[string]bool{}
	for section := range strings.SplitSeq(readFile(t, "docs", "metrics.md"), "\n## ") {
		all := strings.HasPrefix(section, "The ledger\n") || strings.HasPrefix(section, "Chosen nodes\n")
		for _, row := range regexp.MustCompile("(?m)^\\| `(quorate_\\w+)`.*$").FindAllStringSubmatch(section, -1) {
			if !all && !strings.HasSuffix(row[0], "; maximum over members |") {
				continue
			}
			shared[row[1]], shared[row[1]+"_bucket"] = true, true
		}
	}
	if len(shared) < 30 {
		t.Fatalf("docs/metrics.md lists only %d shared metrics", len(shared)/2)
	}
	return shared
}

// TestDashboardsAreGenerated: the files are what tools/dashboards writes.
func TestDashboardsAreGenerated(t *testing.T) {
	folder := t.TempDir()
	generate := exec.CommandContext(t.Context(), "go", "run", "./dashboards", folder)
	generate.Dir = "../../tools"
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range dashboards {
		text, err := os.ReadFile(filepath.Join(folder, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, []byte(readFile(t, "deploy", "grafana", name+".json"))) {
			t.Errorf("deploy/grafana/%s.json is not what tools/dashboards writes: make dashboards", name)
		}
	}
}
