package main_test

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// metric describes one metric of Quorate, on the docs page or on a server.
type metric struct{ kind, labels string }

// TestMetricsPage: docs/metrics.md lists exactly the metrics that a server exports, with types and labels, and
// each has a help text.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	listed := listedMetrics(t)
	f := singleServer(t, "--backup-dir", t.TempDir(), "--metrics-nodes", "busy:team,busy:*/ci,busy:watched",
		"--webhook-hosts", "http://127.0.0.1:*", "--webhook-secrets-dir", secretsFolder(t))
	server := startServer(t, f)
	tree := busyTree()
	tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: "watched", Limits: map[string]*quoratev1.Limit{
		"cores": {Value: &quoratev1.Limit_Advisory{Advisory: 1}},
	}})
	if _, err := f.treeClient().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	f.runUntilDone(t, "webhooks set pager http://127.0.0.1:1/ --secret pager") // a closed port
	f.beBusy(t)
	var found map[string]metric
	awaitCondition(t, "the page of the server lacks something that the document lists", func() bool {
		_, page := httpGet(t, f.baseURL()+"/metrics")
		found = servedMetrics(t, page)
		return len(found) >= len(listed)
	})
	if difference := diff.Diff(listed, found, diff.AllowUnexported(metric{})); difference != "" {
		t.Errorf("docs/metrics.md (-), the server (+):\n%s", difference)
	}
	server.stopCleanly(t)
}

func readPage(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func listedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	listed := map[string]metric{}
	rows := regexp.MustCompile("(?m)^\\| `(quorate_[a-z_]+)` \\| (\\w+) \\|([^|]*)\\|")
	for _, row := range rows.FindAllStringSubmatch(readPage(t, "docs", "metrics.md"), -1) {
		listed[row[1]] = metric{
			row[2], sortedWords(strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })),
		}
	}
	return listed
}

func sortedWords(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

var (
	served = regexp.MustCompile(
		`(?m)^# HELP (quorate_[a-z_]+) (.*)\n# TYPE quorate_[a-z_]+ (\w+)\n((?:quorate_.*\n)+)`)
	labelled = regexp.MustCompile(`[{,]([a-z_]+)="`)
)

// servedMetrics parses Quorate's metrics from a server's page. The label le of histograms is left out.
func servedMetrics(t *testing.T, page string) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	for _, family := range served.FindAllStringSubmatch(page, -1) {
		if len(family[2]) < 10 {
			t.Errorf("%s has no help: %q", family[1], family[2])
		}
		var labels []string
		for _, label := range labelled.FindAllStringSubmatch(family[4], -1) {
			if label[1] != "le" {
				labels = append(labels, label[1])
			}
		}
		found[family[1]] = metric{family[3], sortedWords(labels)}
	}
	return found
}

// libraryMetrics are the metrics of raft and memberlist that docs/metrics.md explains.
func libraryMetrics(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `((?:raft|memberlist)_\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(
		readPage(t, "docs", "metrics.md"), -1) {
		names = append(names, "# TYPE "+row[1]+" "+row[2]+"\n")
	}
	if len(names) < 10 {
		t.Fatalf("the document explains only %v", names)
	}
	return names
}

// fromPrometheus are metrics that Prometheus creates itself, and words of PromQL that look like a metric of Quorate.
var fromPrometheus = []string{"up"}

// withCertificates are exported only by servers that have certificates; TestThreeEncryptedServers checks them.
var withCertificates = []string{"quorate_certificate_expiry_seconds", "quorate_certificate_reloads_total"}

// TestAlertsUseExistingMetrics: every alert uses existing metrics, because a rule about a missing metric never fires.
func TestAlertsUseExistingMetrics(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readPage(t, "deploy", "alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	// TestMetricsPage checks this list against a server, TestObservedTrio that of the libraries.
	known := listedMetrics(t)
	rules := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules++
			if rule.Alert == "" || rule.Annotations["summary"] == "" || rule.Annotations["action"] == "" {
				t.Errorf("%+v has no name, no summary or no word of what to do", rule)
			}
			for _, name := range namesIn(rule.Expr) {
				_, found := known[histogramOf(name, known)]
				if !found && !slices.Contains(fromPrometheus, name) && !slices.Contains(withCertificates, name) {
					t.Errorf("%s asks for %s, which no server has", rule.Alert, name)
				}
			}
			checkWords(t, rule.Alert, rule.Expr)
		}
	}
	if rules < 10 {
		t.Errorf("only %d rules were read", rules)
	}
	for _, query := range regexp.MustCompile("`([^`]*quorate_[^`]*)`").FindAllStringSubmatch(
		readPage(t, "docs", "metrics.md"), -1) {
		for _, name := range namesIn(query[1]) {
			if _, found := known[histogramOf(name, known)]; !found && !slices.Contains(withCertificates, name) {
				t.Errorf("the document asks for %s, which no server has", name)
			}
		}
	}
}

// namesIn returns Quorate's metrics in an expression: names before a selector, a range or an operator.
func namesIn(expression string) []string {
	return regexp.MustCompile(`\b(?:quorate|raft|memberlist|process|go)_[a-z_]+\b`).FindAllString(expression, -1)
}

func histogramOf(name string, known map[string]metric) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, suffix); cut && known[base].kind == "histogram" {
			return base
		}
	}
	return name
}

// checkWords finds misspelt names: apart from metrics, an expression has only words of PromQL and labels of Quorate.
func checkWords(t *testing.T, alert, expression string) {
	t.Helper()
	language := map[string]bool{}
	for word := range strings.FieldsSeq(
		"max min sum by count rate increase histogram_quantile floor scalar absent and or up " +
			"instance procedure version le role code outcome job m h time result webhook") {
		language[word] = true
	}
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expression, "")
	for _, word := range regexp.MustCompile(`[a-z_]+`).FindAllString(bare, -1) {
		if !language[word] && !strings.HasPrefix(word, "quorate_") {
			t.Errorf("%s: %q is neither a metric of ours nor known to this test; known are %v", alert, word,
				slices.SortedFunc(maps.Keys(language), cmp.Compare[string]))
		}
	}
}
