package clustertest_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/quota"
)

// tightDisk is a disk whose space and speed a test decides.
type tightDisk struct {
	raft.LogStore
	disk  *simnet.Disk
	free  atomic.Int64
	takes atomic.Int64
	full  atomic.Bool
}

func (d *tightDisk) StoreLogs(entries []*raft.Log) error {
	time.Sleep(time.Duration(d.takes.Load()))
	if d.full.Load() {
		return errDiskFull
	}
	return d.LogStore.StoreLogs(entries)
}

const diskReserve = 256 << 20

// startTight runs nodes on such disks, each with plenty of space.
func startTight(t *testing.T, size int) (*clustertest.Cluster, map[string]*tightDisk) {
	t.Helper()
	disks := map[string]*tightDisk{}
	parts := func(id string) cluster.Parts {
		d := disks[id]
		if d == nil {
			disk := simnet.NewDisk(3)
			d = &tightDisk{LogStore: disk, disk: disk}
			d.free.Store(1 << 40)
			disks[id] = d
		}
		return cluster.Parts{
			Logs: d, Stable: d.disk, Snapshots: d.disk.Snapshots, Space: func() (int64, error) { return d.free.Load(), nil },
		}
	}
	c := clustertest.Start(t, size, clustertest.WithParts(parts), clustertest.WithConfig(func(c *cluster.Config) {
		c.DiskReserve, c.DiskSlow = diskReserve, 500*time.Millisecond
	}))
	c.PlantTree()
	return c, disks
}

func TestANearlyFullDiskTakesWhatFreesAndNothingThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startTight(t, 3)
		c.Must(clustertest.Take("before", 1))
		c.Must(lease("lease", time.Hour))
		leader := c.Leader()
		disks[leader.Standing().ID].free.Store(diskReserve - 1)
		c.Eventually("the leader has seen it", func() bool { return leader.Disk().Low })

		_, err := clustertest.Propose(leader, clustertest.Take("more", 1))
		var e *cluster.Error
		if !errors.As(err, &e) || e.Reason != cluster.DiskFull || !e.NotApplied {
			t.Errorf("an allocation: %v, want DISK_FULL, not applied", err)
		}
		for _, c := range []quota.Command{quota.Release{ID: "before"}, quota.Renew{ID: "lease"}} {
			if outcome, err := clustertest.Propose(leader, c); err != nil || outcome.Refused != nil {
				t.Errorf("%T: %v, %v; it makes nothing grow", c, outcome.Refused, err)
			}
		}
		if leader.Ready() != nil || !strings.Contains(leader.Standing().Warning, "disk-reserve") {
			t.Errorf("ready: %v, problem %q; want a warning of a node that serves", leader.Ready(), leader.Standing().Warning)
		}
		for _, n := range c.Followers() {
			if p := n.Standing().Warning; p != "" {
				t.Errorf("a follower with room has the problem %q", p)
			}
		}

		disks[leader.Standing().ID].free.Store(diskReserve + diskReserve/4)
		c.Eventually("the leader has seen room", func() bool { return !leader.Disk().Low })
		c.Must(clustertest.Take("more", 1))
		c.Settle()
		if p := leader.Standing().Warning; p != "" {
			t.Errorf("with room again there is the problem %q", p)
		}
	})
}

func TestASlowDiskIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startTight(t, 1)
		n := c.Leader()
		time.Sleep(time.Minute) // until the quick writes of the start do not count any more
		disks["n1"].takes.Store(int64(time.Second))
		for _, id := range []string{"a", "b", "c", "d"} {
			c.Must(clustertest.Take(id, 1))
		}
		c.Eventually("the disk counts as slow", func() bool {
			return n.Disk().Slow && strings.Contains(n.Standing().Warning, "disk-slow")
		})
		disks["n1"].takes.Store(0)
		time.Sleep(time.Minute)
		if n.Disk().Slow || n.Standing().Warning != "" {
			t.Errorf("a minute later: %+v, problem %q", n.Disk(), n.Standing().Warning)
		}
	})
}

// TestAllDisksFullAndThenRoom: no node can write any more, so all stop; with room again they start from what they have, and
// nothing that was acknowledged is missing.
func TestAllDisksFullAndThenRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startTight(t, 3)
		load := c.StartLoad(4)
		time.Sleep(2 * time.Second)
		for _, d := range disks {
			d.full.Store(true)
		}
		c.Eventually("a majority has stopped", func() bool {
			stopped := 0
			for _, n := range c.Nodes() {
				if errors.Is(n.Err(), errDiskFull) {
					stopped++
				}
			}
			return stopped >= 2
		})
		for _, n := range c.Nodes() {
			c.Stop(n.Standing().ID)
		}
		for _, d := range disks {
			d.full.Store(false)
		}
		c.RunMissing()
		c.Leader()
		time.Sleep(2 * time.Second)
		if acknowledged, _ := load.Stop(); acknowledged < 100 {
			t.Errorf("only %d writes were acknowledged", acknowledged)
		}
		load.Check()
		c.Settle()
	})
}
