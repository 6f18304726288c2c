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
		log.Warn("failed to contact quorum of nodes, stepping down")
		log.Warn("failed to contact quorum of nodes, stepping down")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		want := []string{"peer=n2", "peer=n3", "peer=n2", "peer=n3", "stepping down", "stepping down"}
		for i, line := range lines {
			if len(lines) != len(want) || !strings.Contains(line, want[i]) ||
				strings.Contains(line, "repeated=119") != (i == 2 || i == 3) {
				t.Fatalf("the log has the lines\n%s", out.String())
			}
		}
	})
}

// TestRepeatsOfElections: a member that does not hear the leader, or no other member, asks for votes again and again;
// each other member tells of it once a minute, and so does itself.
func TestRepeatsOfElections(t *testing.T) {
	for name, say := range map[string]func(log hclog.Logger, from string){
		"a leader": func(log hclog.Logger, from string) {
			log.Warn("rejecting pre-vote request since we have a leader", "from", from, "leader", "n1", "leader-id", "n1")
		},
		"an older log": func(log hclog.Logger, from string) {
			log.Warn("rejecting vote request since our last index is greater", "candidate", from, "last-index",
				time.Now().UnixNano())
		},
		"a campaign": func(log hclog.Logger, from string) {
			log.Info("pre-vote campaign failed, waiting for election timeout", "from", from, "term", time.Now().UnixNano())
		},
		"no majority": func(log hclog.Logger, from string) {
			log.Info("entering candidate state", "from", from, "term", time.Now().UnixNano())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := NewRepeatsLog(hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true}))
				for range 61 {
					say(log, "n2")
					say(log, "n3")
					time.Sleep(time.Second)
				}
				if lines := strings.Count(out.String(), "\n"); lines != 4 || strings.Count(out.String(), "repeated=59") != 2 {
					t.Errorf("the log has %d lines, want 2 of each member\n%s", lines, out.String())
				}
			})
		})
	}
}
