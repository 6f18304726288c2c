package nodes_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/chaos/nodes"
	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// patience is long: the machine of a test may be busy with others.
const patience = 2 * time.Minute

// binary builds the server, or takes the one that QUORATE_BINARY names.
func binary(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("QUORATE_BINARY"); named != "" {
		return named
	}
	path := filepath.Join(t.TempDir(), "quorate")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../../cmd/quorate").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// ask asks one node about itself.
func ask(t *testing.T, c *nodes.Cluster, node int) (*quoratev1.GetStatusResponse, error) {
	t.Helper()
	api, err := client.New(c.URLs()[node : node+1])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	return api.Cluster.GetStatus(ctx, &quoratev1.GetStatusRequest{Local: true})
}

// await waits until something holds.
func await(t *testing.T, c *nodes.Cluster, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v\n%s", what, patience, c.Logs())
		}
	}
}

// leaderOf is whom a node takes for the leader, or -1.
func leaderOf(t *testing.T, c *nodes.Cluster, node int) int {
	t.Helper()
	status, err := ask(t, c, node)
	if err != nil {
		return -1
	}
	return c.Index(status.GetLeaderId())
}

// TestPartition cuts the leader off. The others elect another one; healed, all follow the same.
func TestPartition(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes")
	}
	t.Parallel()
	c, err := nodes.Start(nodes.Config{Binary: binary(t), Dir: t.TempDir(), Size: 3, Seed: 1, Args: []string{"--log-level", "warn"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !c.Networked() {
		t.Skip("left out here:", c.Without)
	}
	t.Log("left out here:", c.Without)
	first := -1
	await(t, c, "a leader", func() bool { first = leaderOf(t, c, 0); return first >= 0 })
	isolate(c, first, nodes.Link{Cut: true})
	witness := (first + 1) % 3
	await(t, c, "another leader", func() bool { l := leaderOf(t, c, witness); return l >= 0 && l != first })
	isolate(c, first, nodes.Link{})
	await(t, c, "one leader", func() bool { l := leaderOf(t, c, witness); return l >= 0 && l == leaderOf(t, c, first) })
}

// isolate makes all links of a node equally bad.
func isolate(c *nodes.Cluster, node int, link nodes.Link) {
	for other := range c.Nodes {
		c.SetLink(node, other, link)
		c.SetLink(other, node, link)
	}
}
