package main_test

import (
	"strings"
	"testing"
	"time"
)

// TestHoldUntilOverARealServer: a hold and a drain end at a time, by the civil time of the cluster.
func TestHoldUntilOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	applyText(t, f, scheduledTree)
	awaitCivilTime(t, f)
	until := " --until " + time.Now().UTC().Add(100*time.Hour).Format(time.RFC3339) + " --actor ann"
	playSteps(t, f, []step{
		{"node cordon lab:a --for 2h" + until, 2, "--for and --until exclude each other"},
		{"node cordon lab:a --until monday", 2, "is not a time"},
		{"node cordon lab:a --until 2020-01-01T00:00:00Z", 2, "is not later than the civil time of the cluster, 2"},
		{"node drain lab:a --until 2200-01-01T00:00:00Z", 2, "2200-01-01T00:00:00Z is more than 366d after the civil time"},
		{"node list --cordoned lab -o json", 0, "read"},
		{"explain --at lab:x --amount cores=1", 1, "quorate: tree lab has no node"},
		{"node cordon lab:a --dry-run" + until, 0, "hold: queue, for "},
		{"node cordon lab:a" + until, 0, "hold: queue, for "},
		{"node drain lab:b --grace 10m" + until, 0, "drain with a grace of 10m"},
	})
	shown := runCommand(t, "node", "list", "--cordoned", "lab", "--server", f.baseURL()).stdout
	// as long as this test takes less than an hour
	if strings.Count(shown, "in 4d4h")+strings.Count(shown, "in 4d3h") != 2 {
		t.Errorf("the holds do not end in 100 hours:\n%s", shown)
	}
}
