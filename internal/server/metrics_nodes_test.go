package server

import (
	"slices"
	"strings"
	"testing"
)

// TestMetricsNodes: patterns of nodes are checked before a server starts.
func TestMetricsNodes(t *testing.T) {
	base := DefaultSettings()
	base.ID, base.DataDir = "n1", t.TempDir()
	for want, patterns := range map[string][]string{
		"":                                 nil,
		"metrics-nodes: \"t:\" does not":   {"tenants:*", "t:"},
		"metrics-nodes: \"a:b//c\" has an": {"a:b//c"},
		"metrics-nodes has 101 entries: allowed are up to 100": slices.Repeat([]string{"tenants"}, 101),
	} {
		s := base
		s.MetricsNodes = patterns
		err := s.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.3q: %v, want an error that says %q", patterns, err, want)
		}
	}
}
