package deploytest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

func (r rule) name() string { return r.Alert + r.Record }

type ruleTest struct {
	Name        string
	InputSeries []struct{ Series string } `yaml:"input_series"`
	Alerts      []struct {
		Name string `yaml:"alertname"`
		Want []struct {
			Labels map[string]string `yaml:"exp_labels"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readRules(t *testing.T, name string) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy", "prometheus", name)), &file); err != nil {
		t.Fatal(err)
	}
	var list []rule
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	if len(list) < 20 {
		t.Fatalf("%s has only %d rules", name, len(list))
	}
	return list
}

func readRuleTests(t *testing.T) []ruleTest {
	t.Helper()
	var list []ruleTest
	for _, path := range ruleTestFiles(t) {
		var file struct{ Tests []ruleTest }
		text, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(text, &file)
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, file.Tests...)
	}
	return list
}

func ruleTestFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../prometheus/tests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of promtool: %v", err)
	}
	return files
}

// TestEveryAlertIsTested: each alert has a test in which it fires and one in which its metrics do not make it fire. An
// alert that aggregates has one with two clusters.
func TestEveryAlertIsTested(t *testing.T) {
	tests := readRuleTests(t)
	for _, alert := range readRules(t, "alerts.yaml") {
		fires, silent, twoClusters := false, false, false
		for _, test := range tests {
			for _, expected := range test.Alerts {
				if expected.Name != alert.Alert || !test.feeds(alert) {
					continue
				}
				fires = fires || len(expected.Want) > 0
				silent = silent || len(expected.Want) == 0
				twoClusters = twoClusters || test.hasTwoClusters()
			}
		}
		if !fires || !silent {
			t.Errorf("%s: a test that fires %v, a silent one %v", alert.Alert, fires, silent)
		}
		if aggregation.MatchString(alert.Expr) && !twoClusters {
			t.Errorf("%s aggregates, and no test of it has two clusters", alert.Alert)
		}
	}
}

// feeds reports whether a test has series of a metric that an alert asks for.
func (r ruleTest) feeds(alert rule) bool {
	names := namesIn(alert.Expr)
	return slices.ContainsFunc(r.InputSeries, func(s struct{ Series string }) bool {
		return slices.ContainsFunc(namesIn(s.Series), func(name string) bool { return slices.Contains(names, name) })
	})
}

func (r ruleTest) hasTwoClusters() bool {
	found := map[string]bool{}
	for _, s := range r.InputSeries {
		for _, label := range regexp.MustCompile(`cluster="(\w+)"`).FindAllStringSubmatch(s.Series, -1) {
			found[label[1]] = true
		}
	}
	return len(found) > 1
}

// aggregation finds operators that merge series, byCluster those that keep clusters apart.
var (
	aggregation = regexp.MustCompile(`\b(?:max|min|sum|count|avg|topk|bottomk|group|quantile|stddev)\b *(?:by|without|\()`)
	byCluster   = regexp.MustCompile(`\b(?:max|min|sum|count) by \(cluster[,)]`)
)

// TestRulesKeepClustersApart: everything that merges series does so for each cluster.
func TestRulesKeepClustersApart(t *testing.T) {
	for _, r := range slices.Concat(readRules(t, "alerts.yaml"), readRules(t, "rules.yaml")) {
		if all, apart := aggregation.FindAllString(r.Expr, -1), byCluster.FindAllString(r.Expr, -1); len(all) != len(apart) {
			t.Errorf("%s merges clusters: %q aggregates %d times, by cluster %d times", r.name(), r.Expr, len(all),
				len(apart))
		}
	}
}

// TestRulesUseExistingMetrics: a rule about a missing metric never fires, and a misspelt label matches nothing.
func TestRulesUseExistingMetrics(t *testing.T) {
	known := pageMetrics(t)
	for _, r := range slices.Concat(readRules(t, "alerts.yaml"), readRules(t, "rules.yaml")) {
		checkNames(t, known, r.name(), r.Expr)
	}
}

// TestAlertsSayWhatToDo: an alert names the cluster or the member, and the action.
func TestAlertsSayWhatToDo(t *testing.T) {
	for _, alert := range readRules(t, "alerts.yaml") {
		about := alert.Annotations["summary"]
		if !strings.Contains(about, "$labels.cluster") && !strings.Contains(about, "$labels.instance") ||
			alert.Annotations["action"] == "" {
			t.Errorf("%s does not name a cluster or member, or has no action: %v", alert.Alert, alert.Annotations)
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, alert.Labels["severity"]) {
			t.Errorf("%s has severity %q", alert.Alert, alert.Labels["severity"])
		}
	}
}

// TestPromtool lets Prometheus's own tool check the files and play the tests of the rules.
func TestPromtool(t *testing.T) {
	tool := requireTool(t, "promtool")
	for _, arguments := range [][]string{
		{"check", "config", "../prometheus/prometheus.yaml"}, // and the files of rules that it names
		append([]string{"test", "rules"}, ruleTestFiles(t)...),
	} {
		if out, err := exec.CommandContext(t.Context(), tool, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", arguments[:2], err, out)
		}
	}
}

// requireTool returns the path of a program of Debian's package prometheus. Without it the test is skipped, unless make
// verify-metrics runs it.
func requireTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("QUORATE_PROMETHEUS") == "require":
		t.Fatalf("%s is not installed: make prometheus installs it", name)
	default:
		t.Skipf("%s is not installed: make prometheus installs it, and make verify-metrics runs this test", name)
	}
	return ""
}
