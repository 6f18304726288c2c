package deploytest_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func pageMetrics(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{"up": {"job"}} // of Prometheus itself
	page := readFile(t, "docs", "metrics.md")
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+_\\w+)` \\| (gauge|counter|histogram|summary) \\|([^|]*)\\|")
	for _, row := range rows.FindAllStringSubmatch(page, -1) {
		var labels []string
		if strings.HasPrefix(row[1], "quorate_") { // the tables of libraries have no column for labels
			labels = strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		}
		names := []string{row[1]}
		switch row[2] {
		case "histogram":
			names = []string{row[1] + "_bucket", row[1] + "_sum", row[1] + "_count"}
			labels = append(labels, "le")
		case "summary":
			names = append(names, row[1]+"_sum", row[1]+"_count")
			labels = append(labels, "quantile")
		}
		for _, name := range names {
			known[name] = labels
		}
	}
	if len(known) < 100 {
		t.Fatalf("docs/metrics.md lists only %d metrics", len(known))
	}
	return known
}

func namesIn(expression string) []string {
	bare := quoted.ReplaceAllString(expression, `""`)
	names := regexp.MustCompile(`\b(?:quorate|raft|memberlist|process|go)_[a-z]\w*`).FindAllString(bare, -1)
	if regexp.MustCompile(`\bup\{`).MatchString(bare) {
		names = append(names, "up")
	}
	return names
}

var (
	quoted = regexp.MustCompile(`"[^"]*"`)
	word   = regexp.MustCompile(`[A-Za-z_$]\w*`)
)

// promQL are the words of the language that rules and dashboards use.
var promQL = strings.Fields("max min sum count by on unless and or group_left group_right ignoring rate increase " +
	"histogram_quantile floor abs time absent predict_linear offset clamp_min label_replace max_over_time s m h d w e")

// checkNames finds metrics that docs/metrics.md does not have, and labels that no metric of an expression has.
func checkNames(t *testing.T, known map[string][]string, what, expression string) {
	t.Helper()
	names := namesIn(expression)
	if len(names) == 0 {
		t.Errorf("%s asks for no metric: %q", what, expression)
	}
	allowed := append([]string{"cluster", "instance"}, promQL...)
	for _, name := range names {
		labels, found := known[name]
		if !found && !slices.Contains(runtimeMetrics, name) {
			t.Errorf("%s asks for %s, which docs/metrics.md does not have", what, name)
		}
		allowed = append(append(allowed, name), labels...)
	}
	for _, w := range word.FindAllString(quoted.ReplaceAllString(expression, ""), -1) {
		if !slices.Contains(allowed, w) && !strings.HasPrefix(w, "$") {
			t.Errorf("%s: %q is neither a label of its metrics nor known to this test: %s", what, w, expression)
		}
	}
}

// runtimeMetrics are those of Prometheus's collectors for processes in Go, which docs/metrics.md names by their
// prefix.
var runtimeMetrics = strings.Fields("process_cpu_seconds_total process_resident_memory_bytes process_open_fds " +
	"go_goroutines go_memstats_heap_inuse_bytes go_gc_duration_seconds")
