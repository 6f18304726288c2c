package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/quota"
)

// TestWhatANodeDoesIsCounted: one write, one read and one snapshot are in the metrics, and the writer gets the report
// of its entry.
func TestWhatANodeDoesIsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	observer, err := host.NewObserver(registry)
	if err != nil {
		t.Fatal(err)
	}
	s := newTestCluster(t, 1)
	s.configs[0].Observer = observer
	s.startAll()
	s.awaitReady()
	if err := host.RegisterGauges(registry, s.nodes[0]); err != nil {
		t.Fatal(err)
	}
	s.mustWrite(quota.Release{ID: "unknown"})
	if _, _, err := clustertest.ReadUsed(s.nodes[0], cluster.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	var way cluster.EntryReport
	for deadline := time.Now().Add(2 * patience); way.Index == 0; {
		_, index, err := s.nodes[0].Propose(cluster.WithEntryReport(t.Context(), &way), quota.Release{ID: "a"},
			quota.Release{ID: "b"})
		if err == nil && index != way.Index {
			t.Fatalf("the way is that of entry %d, the commands are in %d", way.Index, index)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	inOrder := !way.Sent.Before(way.Queued) && !way.ApplyBegan.Before(way.Sent) && !way.Ended.Before(way.ApplyEnded)
	if way.Commands < 2 || way.Calls < 1 || way.Bytes < 2 || !inOrder {
		t.Errorf("the way is %+v", way)
	}
	if err := s.nodes[0].Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := s.nodes[0].Snapshots()
	if err != nil || len(list) != 1 || list[0].Index < way.Index || list[0].Bytes == 0 {
		t.Errorf("snapshots %v, %v", list, err)
	}
	values := gatherMetrics(t, registry)
	for name, least := range map[string]float64{
		"quorate_entries_total ok": 2, "quorate_entry_commands": 2, "quorate_entry_commit_seconds": 2,
		"quorate_entry_queue_seconds":    2,
		"quorate_applied_commands_total": 3, "quorate_apply_seconds": 2, "quorate_linearizable_reads_total": 1,
		"quorate_read_rounds_total leader ok": 1, "quorate_read_round_seconds leader": 1,
		"quorate_leaderships_total":  1,
		"quorate_snapshots_total ok": 1, "quorate_snapshot_freeze_seconds": 1, "quorate_snapshot_write_seconds": 1,
		"quorate_snapshots":      1,
		"quorate_snapshot_bytes": 1, "quorate_snapshot_index": float64(way.Index),
		"quorate_log_last_index": float64(way.Index),
		"quorate_members voter":  1, "quorate_voters_alive": 1,
	} {
		if values[name] < least {
			t.Errorf("%s is %v, want %v or more", name, values[name], least)
		}
	}
	if values["quorate_entries_total failed"] != 0 || values["quorate_gossip_peers lost"] != 0 {
		t.Errorf("got %v", values)
	}
}

// gatherMetrics has, for histograms, the count.
func gatherMetrics(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func TestRaftAndGossipReportTheirMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := host.InstallMetrics(registry); err != nil {
		t.Fatal(err)
	}
	s := newTestCluster(t, 1)
	s.startAll()
	s.awaitReady()
	s.mustWrite(quota.Release{ID: "unknown"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	page := strings.Join(names, "\n") + "\n"
	for _, want := range []string{"raft_apply\n", "raft_fsm_apply", "raft_leader_dispatchLog", "memberlist_"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s on the page:\n%s", want, page)
		}
	}
}
