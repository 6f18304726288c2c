package clustertest

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Tree, Resource and TreeLimit describe the one limit that the workload runs against.
const (
	Tree      = "test"
	Resource  = "cores"
	TreeLimit = 1_000_000
)

// askTime bounds a write or a read of a test.
const askTime = 20 * time.Second

// CreateTree creates the tree of the workload.
func (c *Cluster) CreateTree() {
	c.t.Helper()
	c.MustPropose(quota.ApplyTrees{
		Meta: quota.ChangeMeta{Actor: "test", Reason: "workload"},
		Trees: []quota.TreeSpec{{
			Name: Tree, Resources: []quota.Resource{{Name: Resource, Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Limits: []quota.ResourceLimit{{Resource: Resource, Limit: quota.AtMost(TreeLimit)}}},
			},
		}},
	})
}

// NewAllocate requests an amount under an id.
func NewAllocate(id string, amount quota.Amount) quota.Allocate {
	return quota.Allocate{ID: id, Claims: []quota.Claim{
		{Tree: Tree, Amounts: quota.Vector{{Resource: Resource, Amount: amount}}},
	}}
}

// MustPropose proposes one command to the leader. It retries while leaders change, and fails the test if that takes
// longer than an election. The command must be idempotent.
func (c *Cluster) MustPropose(command quota.Command) ledger.Outcome {
	c.t.Helper()
	var outcome ledger.Outcome
	c.Eventually("an acknowledged write", func() bool {
		var err error
		outcome, err = Propose(c.Leader(), command)
		return err == nil
	})
	if outcome.Refused != nil {
		c.t.Fatalf("propose %T: refused: %v", command, outcome.Refused)
	}
	return outcome
}

// Propose proposes one command on one node.
func Propose(n *cluster.Node, command quota.Command) (ledger.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	outcomes, _, err := n.Propose(ctx, command)
	if err != nil {
		return ledger.Outcome{}, err
	}
	return outcomes[0], nil
}

// ReadUsed reads from one node how much of the tree is in use.
func ReadUsed(n *cluster.Node, o cluster.ReadOptions) (quota.Amount, cluster.ReadInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var used quota.Amount
	info, err := n.Read(ctx, o, func(v ledger.Reader) {
		page, refused := v.Usage(quota.UsageQuery{Tree: Tree, Max: 1})
		if refused == nil && len(page.Nodes) > 0 {
			used = page.Nodes[0].Resources[0].Subtree
		}
	})
	return used, info, err
}

// CheckEqual waits until all running nodes are at one index and compares their snapshots byte by byte. It returns that
// snapshot.
func (c *Cluster) CheckEqual() []byte {
	c.t.Helper()
	c.AwaitConverged()
	var first []byte
	for i, n := range c.Nodes() {
		id := n.Status().ID
		state := c.takeSnapshot(n, id)
		if i == 0 {
			first = state
		}
		if !bytes.Equal(state, first) {
			c.t.Fatalf("%s holds other bytes than %s", id, c.Nodes()[0].Status().ID)
		}
	}
	return first
}

func (c *Cluster) takeSnapshot(n *cluster.Node, id string) []byte {
	c.t.Helper()
	if err := n.Snapshot(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	list, err := c.disks[id].Snapshots.List()
	if err != nil || len(list) == 0 {
		c.t.Fatalf("%s has no snapshot: %v", id, err)
	}
	_, source, err := c.disks[id].Snapshots.Open(list[0].ID)
	if err != nil {
		c.t.Fatal(err)
	}
	defer source.Close() //nolint:errcheck // in memory
	state, err := io.ReadAll(source)
	if err != nil {
		c.t.Fatal(err)
	}
	return state
}
