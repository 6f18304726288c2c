package host_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/quota"
)

func TestRaftAndGossipReportTheirMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := host.InstallMetrics(registry); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, 1)
	s.start()
	s.ready()
	s.write(quota.Release{ID: "unknown"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	page := strings.Join(names, "\n") + "\n"
	for _, want := range []string{"raft_apply\n", "raft_fsm_apply", "raft_boltdb_", "memberlist_"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s on the page:\n%s", want, page)
		}
	}
}
