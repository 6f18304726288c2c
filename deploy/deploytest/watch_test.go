package deploytest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// TestEveryQueryReturnsData: a real Prometheus scrapes three servers under load, evaluates all rules without an error,
// and has data for every recording rule, every query of every panel, and the variables of the dashboards. No panel may
// be empty here.
func TestEveryQueryReturnsData(t *testing.T) {
	verify.Only(t)
	program := requireTool(t, "prometheus")
	w := startWatched(t)
	w.keepBusy(t)
	p := startPrometheus(t, program, w.metrics)
	missing := map[string]string{}
	for _, r := range readRules(t, "rules.yaml") {
		missing["rule "+r.Record] = r.Record
	}
	eachQuery(t, func(what, expression string) { missing[what+": "+expression] = fillVariables(expression) })
	eachVariable(t, func(what, query string) { missing[what] = fillVariables(query) })
	asked := len(missing)
	defer func() {
		for _, what := range slices.Sorted(maps.Keys(missing)) {
			t.Errorf("no data: %s", what)
		}
		t.Logf("%d queries, variables and recording rules, %d without data", asked, len(missing))
	}()
	servertest.Await(t, patience, "every query has data", func() bool {
		for what, query := range missing {
			if p.hasData(t, query) {
				delete(missing, what)
			}
		}
		return len(missing) == 0
	})
	p.checkRules(t)
}

// fillVariables replaces the variables of a dashboard as Grafana does.
func fillVariables(expression string) string {
	return strings.NewReplacer("$cluster", clusterName, "$tree", ".*", "$__rate_interval", "15s").Replace(expression)
}

type prometheus struct{ url string }

// startPrometheus starts one that scrapes the addresses every second, with the configuration in deploy/prometheus
// except for addresses and intervals.
func startPrometheus(t *testing.T, program string, addresses []string) prometheus {
	t.Helper()
	rules, err := filepath.Abs("../prometheus")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(
		"15s", "1s", "cluster: quorate", "cluster: "+clusterName,
		"- rules.yaml", "- "+rules+"/rules.yaml", "- alerts.yaml", "- "+rules+"/alerts.yaml",
		`["10.0.0.1:7401", "10.0.0.2:7401", "10.0.0.3:7401"]`, `["`+strings.Join(addresses, `", "`)+`"]`,
	).Replace(readFile(t, "deploy", "prometheus", "prometheus.yaml"))
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "prometheus.yaml"), config)
	address := servertest.FreePorts(t, 1)[0]
	servertest.StartProcess(t, "prometheus", exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address, "--log.level", "warn"))
	p := prometheus{"http://" + address}
	servertest.Await(t, patience, "Prometheus scrapes three members", func() bool {
		return p.hasData(t, fmt.Sprintf(`count by (cluster) (up{job="quorate", cluster=%q} == 1) == 3`, clusterName))
	})
	return p
}

// ask returns false without an answer.
func (p prometheus) ask(t *testing.T, path string, data any) bool {
	t.Helper()
	status, text := httpGet(t, p.url+path)
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if status == 0 || status == http.StatusServiceUnavailable {
		return false // it starts
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %d %v %s", path, status, err, text)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return true
}

func (p prometheus) hasData(t *testing.T, query string) bool {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if !p.ask(t, "/api/v1/query?query="+url.QueryEscape(query), &data) {
		return false
	}
	for _, sample := range data.Result {
		text, _ := sample.Value[1].(string)
		if number, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(number) {
			return true
		}
	}
	return false
}

// checkRules: Prometheus has evaluated every rule without an error, and no alert says that the healthy cluster is lost.
func (p prometheus) checkRules(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct {
				Name, Health, LastError, State string
				Labels                         struct{ Severity string }
			}
		}
	}
	if !p.ask(t, "/api/v1/rules", &data) {
		t.Fatal("Prometheus does not answer")
	}
	rules := 0
	for _, group := range data.Groups {
		for _, r := range group.Rules {
			rules++
			if r.Health != "ok" {
				t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
			}
			if r.State == "firing" && r.Labels.Severity == "critical" {
				t.Errorf("%s fires", r.Name)
			}
		}
	}
	if want := len(readRules(t, "rules.yaml")) + len(readRules(t, "alerts.yaml")); rules != want {
		t.Errorf("Prometheus has %d rules, want %d", rules, want)
	}
}

func httpGet(t *testing.T, address string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}
