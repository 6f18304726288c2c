package clustertest

import (
	"context"
	"errors"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/simnet"
)

// colleagues is how a node of the test asks the others: over the same ways as raft's.
type colleagues struct {
	c    *Cluster
	self string
}

var errNoWay = errors.New("it cannot be reached")

// Standing asks a node how it stands.
func (k colleagues) Standing(_ context.Context, m cluster.Member) (cluster.Standing, error) {
	n := k.c.reach(k.self, m.ID)
	if n == nil {
		return cluster.Standing{}, errNoWay
	}
	standing := n.Standing()
	k.c.mu.Lock()
	change := k.c.pretends[m.ID]
	k.c.mu.Unlock()
	if change != nil {
		change(&standing)
	}
	return standing, nil
}

// Notify tells a node about its place.
func (k colleagues) Notify(_ context.Context, m cluster.Member, notice cluster.Notice) error {
	n := k.c.reach(k.self, m.ID)
	if n == nil {
		return errNoWay
	}
	return n.Notify(notice)
}

// Add runs one node more, on an empty disk, that forms no cluster and waits to be taken in.
func (c *Cluster) Add(id string) *cluster.Node {
	c.t.Helper()
	c.mu.Lock()
	c.ids = append(c.ids, id)
	c.added[id] = true
	c.disks[id] = simnet.NewDisk(snapshotsKept)
	c.mu.Unlock()
	return c.Run(id)
}

// Wipe replaces the disk of a node that does not run by an empty one.
func (c *Cluster) Wipe(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disks[id] = simnet.NewDisk(snapshotsKept)
}

// Health is what the leader says about all nodes, by id; nil while nobody leads.
func (c *Cluster) Health() map[string]cluster.Health {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	list, err := c.Leader().Health(ctx)
	if err != nil {
		return nil
	}
	found := map[string]cluster.Health{}
	for _, h := range list {
		found[h.ID] = h
	}
	return found
}

// Voters counts those who have a vote, and are well.
func (c *Cluster) Voters() (all, healthy int) {
	for _, h := range c.Health() {
		if h.Seat == cluster.SeatVoter {
			all++
			if h.Healthy {
				healthy++
			}
		}
	}
	return all, healthy
}
