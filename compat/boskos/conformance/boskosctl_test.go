package conformance

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/boskos/common"
)

// ctl runs boskosctl for an owner.
func ctl(t *testing.T, n *node, owner string, args ...string) string {
	t.Helper()
	return run(t, boskosctl, append([]string{"--server-url", n.url(), "--owner-name", owner}, args...)...)
}

// commandLine is the life of a lease by way of boskosctl, through every node, with a leader that is killed under the
// heartbeat.
func (c *cluster) commandLine(t *testing.T) {
	t.Helper()
	leader, others := c.leader(t)
	taken := ctl(t, leader, "job", "acquire", "--type", "domain", "--state", "dirty", "--target-state", "busy")
	var resource common.Resource
	if err := json.Unmarshal([]byte(taken), &resource); err != nil || resource.Name != "domain-1" {
		t.Fatalf("acquire prints %s, %v", taken, err)
	}
	refused := exec.Command(boskosctl, "--server-url", others[0].url(), "--owner-name", "other",
		"acquire", "--type", "domain", "--state", "dirty", "--target-state", "busy")
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "resources not found") {
		t.Errorf("a second acquire prints %s, %v", out, err)
	}
	beats := startHeart(t, others[0], "job", "heartbeat", "--resource", taken, "--period", "100ms", "--retries", "0")
	await(t, "the heart beats", func() bool { return beats.count() > 1 })
	c.loseLeader(t)
	before := beats.count()
	await(t, "the heart beats under another leader", func() bool { return beats.count() > before+2 })
	beats.stop(t)
	if got := ctl(t, others[1], "job", "metrics", "--type", "domain"); !strings.Contains(got, `"current":{"busy":1}`) {
		t.Errorf("metrics prints %s", got)
	}
	if got := ctl(t, others[1], "job", "release", "--name", "domain-1", "--target-state",
		"dirty"); !strings.Contains(got, "released") {
		t.Errorf("release prints %s", got)
	}
	ctl(t, others[0], "next", "acquire", "--type", "domain", "--state", "dirty", "--target-state", "busy",
		"--timeout", "30s")
}

// heart is a heartbeat that runs.
type heart struct {
	process *exec.Cmd
	says    safeBuffer
}

func startHeart(t *testing.T, n *node, owner string, args ...string) *heart {
	t.Helper()
	h := &heart{process: exec.Command(boskosctl,
		append([]string{"--server-url", n.url(), "--owner-name", owner}, args...)...)}
	h.process.Stdout, h.process.Stderr = &h.says, &h.says
	if err := h.process.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *heart) count() int { return strings.Count(h.says.String(), "heartbeat sent") }

// stop ends it, and wants that no beat has failed.
func (h *heart) stop(t *testing.T) {
	t.Helper()
	if err := h.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.process.Wait() // it was killed
	if said := h.says.String(); strings.Contains(said, "failed") {
		t.Errorf("heartbeat prints\n%s", said)
	}
}
