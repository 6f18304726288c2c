package clustertest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
)

// TestALeaderHandsOverToABetterDisk: a leader whose writes are slow, though not enough for a warning, or whose disk is
// nearly full, makes room for a member with a good disk.
func TestALeaderHandsOverToABetterDisk(t *testing.T) {
	for name, spoil := range map[string]func(*smallDisk){
		"slow": func(d *smallDisk) { d.takes.Store(int64(200 * time.Millisecond)) },
		"full": func(d *smallDisk) { d.free.Store(diskReserve - 1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, disks := startWithSmallDisks(t, 3)
				for _, d := range disks {
					d.takes.Store(int64(time.Millisecond))
				}
				c.MustPropose(leaseRequest("lease", time.Hour)) // so that there is a tick to write each second
				former := c.Leader()
				spoil(disks[former.Status().ID])
				c.EventuallyWithin(time.Minute, "another leader", func() bool {
					return !former.IsLeader() && c.Leader() != former
				})
				c.MustPropose(clustertest.NewAllocate("grows", 1))
				c.AwaitConverged()
			})
		})
	}
}

// TestLeadersDoNotHandOverInACircle: with bad disks everywhere, and once a member has handed over because of its disk,
// the leader stays.
func TestLeadersDoNotHandOverInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 3)
		for _, d := range disks {
			d.free.Store(diskReserve - 1)
		}
		first := c.Leader()
		time.Sleep(time.Minute)
		if !first.IsLeader() {
			t.Fatal("the leader changed although all disks are full")
		}
		for id, d := range disks {
			if id != first.Status().ID {
				d.free.Store(1 << 40)
			}
		}
		c.EventuallyWithin(time.Minute, "another leader", func() bool { return !first.IsLeader() && c.Leader() != first })
		c.Eventually("the first leader takes the leadership back", func() bool {
			_, err := c.Leader().TransferLeader(t.Context(), first.Status().ID)
			return err == nil && first.IsLeader()
		})
		time.Sleep(time.Minute)
		if !first.IsLeader() {
			t.Error("it handed over a second time before its disk was good again")
		}

		disks[first.Status().ID].free.Store(1 << 40)
		time.Sleep(time.Minute)
		disks[first.Status().ID].free.Store(diskReserve - 1)
		c.EventuallyWithin(time.Minute, "it hands over again", func() bool { return !first.IsLeader() })
	})
}
