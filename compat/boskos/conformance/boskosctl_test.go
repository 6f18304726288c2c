package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/boskos/common"

	"github.com/quorate/quorate/internal/servertest"
)

// boskosctl is the unmodified command line.
var boskosctl = &servertest.Program{Folder: ".", Package: "sigs.k8s.io/boskos/cmd/boskosctl"}

func ctlCommand(ctx context.Context, t *testing.T, url, owner string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"--server-url", url, "--owner-name", owner}, args...)
	return exec.CommandContext(ctx, boskosctl.Path(t), args...)
}

func ctl(t *testing.T, url, owner string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := ctlCommand(ctx, t, url, owner, args...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("boskosctl %v: %v\n%s%s", args, err, out, said.String())
	}
	return string(out)
}

// commandLine is the life of a lease by way of boskosctl, through every node, with a leader that is killed under the
// heartbeat.
func (c *cluster) commandLine(t *testing.T) {
	t.Helper()
	leader, others := c.Leader(t)
	taken := ctl(t, c.url(leader), "job", "acquire", "--type", "domain", "--state", "dirty", "--target-state", "busy")
	var resource common.Resource
	if err := json.Unmarshal([]byte(taken), &resource); err != nil || resource.Name != "domain-1" {
		t.Fatalf("acquire prints %s, %v", taken, err)
	}
	refused := ctlCommand(t.Context(), t, c.url(others[0]), "other",
		"acquire", "--type", "domain", "--state", "dirty", "--target-state", "busy")
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "resources not found") {
		t.Errorf("a second acquire prints %s, %v", out, err)
	}
	beats := startHeartbeat(t, c.url(others[0]), "job", "heartbeat", "--resource", taken, "--period", "100ms",
		"--retries", "0")
	await(t, "heartbeats are sent", func() bool { return beats.count() > 1 })
	c.loseLeader(t)
	before := beats.count()
	await(t, "heartbeats are sent under another leader", func() bool { return beats.count() > before+2 })
	beats.stop(t)
	if got := ctl(t, c.url(others[1]), "job", "metrics", "--type",
		"domain"); !strings.Contains(got, `"current":{"busy":1}`) {
		t.Errorf("metrics prints %s", got)
	}
	if got := ctl(t, c.url(others[1]), "job", "release", "--name", "domain-1", "--target-state",
		"dirty"); !strings.Contains(got, "released") {
		t.Errorf("release prints %s", got)
	}
	ctl(t, c.url(others[0]), "next", "acquire", "--type", "domain", "--state", "dirty", "--target-state", "busy",
		"--timeout", "30s")
}

type heartbeat struct{ *servertest.Process }

func startHeartbeat(t *testing.T, url, owner string, args ...string) heartbeat {
	t.Helper()
	return heartbeat{servertest.StartProcess(t, "heartbeat", ctlCommand(context.Background(), t, url, owner, args...))}
}

func (h heartbeat) count() int { return strings.Count(h.Output(), "heartbeat sent") }

// stop fails the test if a heartbeat has failed.
func (h heartbeat) stop(t *testing.T) {
	t.Helper()
	h.Kill()
	if said := h.Output(); strings.Contains(said, "failed") {
		t.Errorf("heartbeat prints\n%s", said)
	}
}
