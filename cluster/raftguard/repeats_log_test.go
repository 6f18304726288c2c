package raftguard

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestRepeatsLog: while a member is down, raft's messages about it appear once a minute, and other messages always.
func TestRepeatsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := NewRepeatsLog(hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true}))
		for range 180 { // a minute and a half
			log.Error("failed to heartbeat to", "peer", "n2", "backoff time", time.Second, "error", "refused")
			log.Error("failed to heartbeat to", "peer", "n3", "error", "refused")
			time.Sleep(time.Second / 2)
		}
		log.Warn("heartbeat timeout reached, starting election")
		log.Warn("heartbeat timeout reached, starting election")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		want := []string{"peer=n2", "peer=n3", "peer=n2", "peer=n3", "starting election", "starting election"}
		for i, line := range lines {
			if len(lines) != len(want) || !strings.Contains(line, want[i]) ||
				strings.Contains(line, "repeated=119") != (i == 2 || i == 3) {
				t.Fatalf("the log has the lines\n%s", out.String())
			}
		}
	})
}
