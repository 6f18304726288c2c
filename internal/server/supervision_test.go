package server

import (
	"context"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
)

// TestProgressIsThatCommittedEntriesAreApplied: an idle node and a node that is behind make progress, and one that
// applies nothing of what was committed does not.
func TestProgressIsThatCommittedEntriesAreApplied(t *testing.T) {
	checks := []struct {
		name               string
		applied, committed uint64
		want               bool
	}{
		{"the first check", 10, 12, true},
		{"a part was applied", 11, 12, true},
		{"the rest was applied", 12, 12, true},
		{"idle", 12, 12, true},
		{"committed since the last check", 12, 20, true},
		{"nothing of it was applied", 12, 20, false},
		{"still nothing", 12, 30, false},
		{"one entry", 13, 30, true},
		{"nothing more", 13, 30, false},
		{"a restored snapshot", 30, 30, true},
	}
	var status cluster.NodeStatus
	v := newSupervision(func() cluster.NodeStatus { return status }, hclog.NewNullLogger())
	for _, c := range checks {
		status.AppliedIndex, status.CommitIndex = c.applied, c.committed
		if got := v.progresses(); got != c.want {
			t.Errorf("%s (%d of %d): progress is %v, want %v", c.name, c.applied, c.committed, got, c.want)
		}
	}
}

// TestAStalledNodeDoesNotFeedTheWatchdog looks at what the process manager is sent.
func TestAStalledNodeDoesNotFeedTheWatchdog(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", "")
	status := cluster.NodeStatus{AppliedIndex: 5, CommitIndex: 9}
	checks := 0
	enough := make(chan struct{})
	v := newSupervision(func() cluster.NodeStatus {
		if checks++; checks == 5 {
			close(enough)
		}
		return status
	}, hclog.NewNullLogger())
	var sent []string
	v.notify = func(state string) (bool, error) {
		sent = append(sent, state)
		return true, nil
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		v.watch(ctx)
	}()
	<-enough
	cancel()
	<-ended
	if !slices.Equal(sent, []string{"WATCHDOG=1"}) {
		t.Errorf("sent %q; want one message, of the first check, which had nothing to compare with", sent)
	}
}
