package clustertest

import (
	"context"
	"errors"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/simnet"
)

// testPeerClient is the cluster.PeerClient of a test node. It is subject to the same faults as raft's messages.
type testPeerClient struct {
	c    *Cluster
	self string
}

var errUnreachable = errors.New("it cannot be reached")

// Status queries the status of a node.
func (k testPeerClient) Status(_ context.Context, m cluster.Member) (cluster.NodeStatus, error) {
	n := k.c.reachableNode(k.self, m.ID)
	if n == nil {
		return cluster.NodeStatus{}, errUnreachable
	}
	standing := n.Status()
	k.c.mu.Lock()
	change := k.c.statusOverrides[m.ID]
	k.c.mu.Unlock()
	if change != nil {
		change(&standing)
	}
	return standing, nil
}

// Notify delivers a notice to a node.
func (k testPeerClient) Notify(_ context.Context, m cluster.Member, notice cluster.Notice) error {
	n := k.c.reachableNode(k.self, m.ID)
	if n == nil {
		return errUnreachable
	}
	return n.Notify(notice)
}

// AddNode starts another node on an empty disk. It forms no cluster and waits to be added.
func (c *Cluster) AddNode(id string) *cluster.Node {
	c.t.Helper()
	c.mu.Lock()
	c.ids = append(c.ids, id)
	c.added[id] = true
	c.disks[id] = simnet.NewDisk(snapshotsKept)
	c.mu.Unlock()
	return c.StartNode(id)
}

// WipeDisk replaces the disk of a stopped node by an empty one.
func (c *Cluster) WipeDisk(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disks[id] = simnet.NewDisk(snapshotsKept)
}

// Health returns the leader's view of all nodes by id; nil if the leader does not answer.
func (c *Cluster) Health() map[string]cluster.NodeHealth {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	list, err := c.Leader().Health(ctx)
	if err != nil {
		return nil
	}
	found := map[string]cluster.NodeHealth{}
	for _, h := range list {
		found[h.ID] = h
	}
	return found
}

// Voters counts the voters, and the healthy ones among them.
func (c *Cluster) Voters() (all, healthy int) {
	for _, h := range c.Health() {
		if h.Role == cluster.RoleVoter {
			all++
			if h.Healthy {
				healthy++
			}
		}
	}
	return all, healthy
}
