package main_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metricLabels are all labels that metrics of Quorate may have. A label means the same in each.
var metricLabels = strings.Fields("asker certificate cluster from go le level limit member node outcome part peer " +
	"procedure reason resource role state tree verb version webhook")

// sharedHelp ends the help of metrics of the replicated state, which every member reports.
const sharedHelp = "Every member reports it: take the maximum over members, not the sum."

// firstInstant is a time in seconds since 1970 that is earlier than each instant and longer than each duration of a
// test.
const firstInstant = 1e9

var (
	metricName = regexp.MustCompile(`^quorate_[a-z]+(_[a-z]+)*$`)
	// misplacedUnit finds units that are not the end of a name, or not base units.
	misplacedUnit = regexp.MustCompile(`_(seconds|bytes)_[a-z]|_(ms|millis|milliseconds|minutes|kb|mb|percent|count)(_|$)`)
	sampleValue   = regexp.MustCompile(`(?m)^quorate_\S+(?:\{.*\})? (\S+)$`)
)

// checkMetricRules walks all metrics of Quorate on the page of a server: names, units, labels and help keep the rules
// of docs/metrics.md.
func checkMetricRules(t *testing.T, page string) {
	t.Helper()
	shared, families := replicatedMetrics(t), served.FindAllStringSubmatch(page, -1)
	if len(families) < 60 {
		t.Errorf("only %d metrics were read", len(families))
	}
	for _, family := range families {
		name, help, kind, samples := family[1], family[2], family[3], family[4]
		total := strings.HasSuffix(name, "_total")
		if !metricName.MatchString(name) || total != (kind == "counter") ||
			misplacedUnit.MatchString(strings.TrimSuffix(name, "_total")) {
			t.Errorf("the %s %s is not named by the rules", kind, name)
		}
		if len(help) < 10 || !strings.HasSuffix(help, ".") {
			t.Errorf("the help of %s is not a sentence: %q", name, help)
		}
		if strings.HasSuffix(help, sharedHelp) != shared[name] {
			t.Errorf("docs/metrics.md says of %s that all members report it alike: %v; its help is %q", name, shared[name], help)
		}
		for _, label := range labelled.FindAllStringSubmatch(samples, -1) {
			isNode := label[1] == "node" && !strings.HasPrefix(name, "quorate_node_")
			if isNode || !slices.Contains(metricLabels, label[1]) {
				t.Errorf("%s has the label %s", name, label[1])
			}
		}
		checkInstants(t, name, kind, samples)
	}
}

// checkInstants tells instants from durations by their values.
func checkInstants(t *testing.T, name, kind, samples string) {
	t.Helper()
	if kind != "gauge" || !strings.HasSuffix(name, "_seconds") {
		return
	}
	for _, sample := range sampleValue.FindAllStringSubmatch(samples, -1) {
		value, err := strconv.ParseFloat(sample[1], 64)
		if isInstant := value > firstInstant; err != nil || isInstant != strings.HasSuffix(name, "_timestamp_seconds") {
			t.Errorf("%s is %s (%v): instants end in _timestamp_seconds, durations in _seconds", name, sample[1], err)
		}
	}
}

// replicatedMetrics are those of which docs/metrics.md says that all members report them alike.
func replicatedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	shared := map[string]bool{}
	for section := range strings.SplitSeq(readPage(t, "docs", "metrics.md"), "\n## ") {
		all := strings.HasPrefix(section, "The ledger\n") || strings.HasPrefix(section, "Chosen nodes\n")
		for _, row := range regexp.MustCompile("(?m)^\\| `(quorate_\\w+)`.*$").FindAllStringSubmatch(section, -1) {
			shared[row[1]] = all || strings.HasSuffix(row[0], "; maximum over members |")
		}
	}
	return shared
}
