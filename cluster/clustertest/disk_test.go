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

// smallDisk is a disk whose free space and latency are set by a test.
type smallDisk struct {
	raft.LogStore
	disk  *simnet.Disk
	free  atomic.Int64
	takes atomic.Int64
	full  atomic.Bool
	// hangs keeps writes from returning.
	hangs atomic.Bool
}

func (d *smallDisk) StoreLogs(entries []*raft.Log) error {
	time.Sleep(time.Duration(d.takes.Load()))
	for d.hangs.Load() {
		time.Sleep(100 * time.Millisecond)
	}
	if d.full.Load() {
		return errDiskFull
	}
	return d.LogStore.StoreLogs(entries)
}

const diskReserve = 256 << 20

// startWithSmallDisks runs nodes on such disks, each with plenty of space.
func startWithSmallDisks(
	t *testing.T, size int, change ...func(*cluster.Config),
) (*clustertest.Cluster, map[string]*smallDisk) {
	t.Helper()
	disks := map[string]*smallDisk{}
	parts := func(id string) cluster.Parts {
		d := disks[id]
		if d == nil {
			disk := simnet.NewDisk(3)
			d = &smallDisk{LogStore: disk, disk: disk}
			d.free.Store(1 << 40)
			disks[id] = d
		}
		return cluster.Parts{
			Logs: d, Stable: d.disk, Snapshots: d.disk.Snapshots,
			FreeSpace: func() (int64, error) { return d.free.Load(), nil },
		}
	}
	c := clustertest.Start(t, size, clustertest.WithParts(parts), clustertest.WithConfig(func(c *cluster.Config) {
		c.DiskReserve, c.DiskSlow = diskReserve, 500*time.Millisecond
		for _, f := range change {
			f(c)
		}
	}))
	c.CreateTree()
	return c, disks
}

func TestANearlyFullDiskTakesWhatFreesAndNothingThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 3)
		c.MustPropose(clustertest.NewAllocate("before", 1))
		c.MustPropose(leaseRequest("lease", time.Hour))
		leader := c.Leader()
		disks[leader.Status().ID].free.Store(diskReserve - 1)
		c.Eventually("the leader has seen it", func() bool { return leader.DiskStatus().Low })

		_, err := clustertest.Propose(leader, clustertest.NewAllocate("more", 1))
		var e *cluster.Error
		if !errors.As(err, &e) || e.Reason != cluster.DiskFull || !e.NotApplied {
			t.Errorf("an allocation: %v, want DISK_FULL, not applied", err)
		}
		for _, c := range []quota.Command{quota.Release{ID: "before"}, quota.Renew{ID: "lease"}} {
			if outcome, err := clustertest.Propose(leader, c); err != nil || outcome.Refused != nil {
				t.Errorf("%T: %v, %v; it makes nothing grow", c, outcome.Refused, err)
			}
		}
		if leader.Ready() != nil || !strings.Contains(leader.Status().Warning, "disk-reserve") {
			t.Errorf("ready: %v, problem %q; want a warning of a node that serves", leader.Ready(),
				leader.Status().Warning)
		}
		for _, n := range c.Followers() {
			if p := n.Status().Warning; p != "" {
				t.Errorf("a follower with free space has the problem %q", p)
			}
		}

		disks[leader.Status().ID].free.Store(diskReserve + diskReserve/4)
		c.Eventually("the leader has seen the free space", func() bool { return !leader.DiskStatus().Low })
		c.MustPropose(clustertest.NewAllocate("more", 1))
		c.AwaitConverged()
		if p := leader.Status().Warning; p != "" {
			t.Errorf("with free space there is the problem %q", p)
		}
	})
}

func TestASlowDiskIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 1)
		n := c.Leader()
		time.Sleep(time.Minute) // until the quick writes of the start do not count any more
		disks["n1"].takes.Store(int64(time.Second))
		for _, id := range []string{"a", "b", "c", "d"} {
			c.MustPropose(clustertest.NewAllocate(id, 1))
		}
		c.Eventually("the disk counts as slow", func() bool {
			return n.DiskStatus().Slow && strings.Contains(n.Status().Warning, "disk-slow")
		})
		disks["n1"].takes.Store(0)
		time.Sleep(time.Minute)
		if n.DiskStatus().Slow || n.Status().Warning != "" {
			t.Errorf("a minute later: %+v, problem %q", n.DiskStatus(), n.Status().Warning)
		}
	})
}

// TestAllDisksFullAndThenRoom: no node can write any more, so all stop. With free space they restart from their stores,
// and nothing that was acknowledged is missing.
func TestAllDisksFullAndThenRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 3)
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
			c.Stop(n.Status().ID)
		}
		for _, d := range disks {
			d.full.Store(false)
		}
		c.StartMissing()
		c.Leader()
		time.Sleep(2 * time.Second)
		if acknowledged, _ := load.Stop(); acknowledged < 100 {
			t.Errorf("only %d writes were acknowledged", acknowledged)
		}
		load.Check()
		c.AwaitConverged()
	})
}
