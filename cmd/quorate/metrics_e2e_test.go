package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/server"
)

// metric describes one metric of Quorate, on the docs page or on a server.
type metric struct{ kind, labels string }

// TestMetricsPage: docs/metrics.md lists exactly the metrics that a server exports, with types and labels, and
// each has a help text.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	listed := listedMetrics(t)
	for _, name := range withCertificates {
		delete(listed, name)
	}
	f := singleServer(t, "--backup-dir", t.TempDir(), "--metrics-nodes", "busy:team,busy:*/ci,busy:watched",
		"--webhook-hosts", "http://127.0.0.1:*", "--webhook-secrets-dir", secretsFolder(t))
	process := startServer(t, f)
	tree := busyTree()
	tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: "watched", Limits: map[string]*quoratev1.Limit{
		"cores": {Value: &quoratev1.Limit_Advisory{Advisory: 1}},
	}})
	if _, err := f.treeClient().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	f.runUntilDone(t, "webhook set pager http://127.0.0.1:1/ --secret pager") // a closed port
	f.beBusy(t)
	beDenied(t, f)
	var found map[string]metric
	var page string
	t.Cleanup(func() { // also if it is not awaited
		if difference := diff.Diff(listed, found, diff.AllowUnexported(metric{})); difference != "" {
			t.Errorf("docs/metrics.md (-), the server (+):\n%s", difference)
		}
	})
	awaitCondition(t, "the page of the server lacks something that the document lists", func() bool {
		_, page = httpGet(t, f.baseURL()+"/metrics")
		found = servedMetrics(t, page)
		return len(found) >= len(listed)
	})
	checkMetricRules(t, page)
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, `cluster="quorate"`) {
			t.Errorf("a metric does not name the cluster: %s", line)
		}
	}
	process.stopCleanly(t)
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

// servedMetrics parses Quorate's metrics from a server's page. The label le of histograms, and that of the cluster, are
// left out.
func servedMetrics(t *testing.T, page string) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	for _, family := range served.FindAllStringSubmatch(page, -1) {
		if len(family[2]) < 10 {
			t.Errorf("%s has no help: %q", family[1], family[2])
		}
		var labels []string
		for _, label := range labelled.FindAllStringSubmatch(family[4], -1) {
			if label[1] != "le" && label[1] != server.ClusterLabel {
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

// withCertificates are exported only by servers that have certificates; TestThreeEncryptedServers checks them.
var withCertificates = []string{"quorate_certificate_expiry_timestamp_seconds", "quorate_certificate_reloads_total"}

// TestQueriesOnTheMetricsPage: the queries of docs/metrics.md use existing metrics. Package deploytest checks those of
// alerts and dashboards against the page.
func TestQueriesOnTheMetricsPage(t *testing.T) {
	known, queries := listedMetrics(t), 0
	for _, query := range regexp.MustCompile("`([^`]*quorate_[^`]*)`").FindAllStringSubmatch(
		readPage(t, "docs", "metrics.md"), -1) {
		for _, name := range namesIn(query[1]) {
			queries++
			if _, found := known[histogramOf(name, known)]; !found {
				t.Errorf("the document asks for %s, which no server has", name)
			}
		}
	}
	if queries < 10 {
		t.Errorf("only %d queries were read", queries)
	}
}

// namesIn finds names before a selector, a range or an operator.
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
