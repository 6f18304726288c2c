package clustertest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

// nextVersion understands format 2, which a made-up next release has: in it allocations may have a label "next".
var nextVersion = fsm.NewFormats(fsm.Requirement{Format: 2, IsUsed: func(c quota.Command) bool {
	a, ok := c.(quota.Allocate)
	return ok && len(a.Labels) > 0 && a.Labels[0].Key == "next"
}})

func versions(formats *fsm.Formats, ids ...string) clustertest.Option {
	return func(c *clustertest.Cluster) {
		for _, id := range ids {
			c.SetVersion(id, formats)
		}
	}
}

// restartAs takes nil for this version.
func restartAs(c *clustertest.Cluster, id string, formats *fsm.Formats) {
	c.Stop(id)
	c.SetVersion(id, formats)
	c.StartNode(id)
}

// tryNext proposes what only the next version understands.
func tryNext(t *testing.T, c *clustertest.Cluster, id string) error {
	t.Helper()
	allocate := clustertest.NewAllocate(id, 1)
	allocate.Labels = []quota.Label{{Key: "next", Value: "yes"}}
	_, _, err := c.Leader().Propose(t.Context(), allocate)
	return err
}

func wantNotUpgraded(t *testing.T, err error, member string) {
	t.Helper()
	if cluster.ReasonOf(err) != cluster.NotUpgraded || !strings.Contains(err.Error(), member) {
		t.Fatalf("it was answered %v, want NOT_UPGRADED because of %s", err, member)
	}
}

// TestAMemberThatWasNeverHeardCountsAsNotUpgraded: nothing else is safe.
func TestAMemberThatWasNeverHeardCountsAsNotUpgraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, versions(nextVersion, "n1", "n2", "n3"))
		c.CreateTree()
		silent := c.Followers()[0].Status().ID
		c.Isolate(silent)
		for _, n := range c.Nodes() {
			if id := n.Status().ID; id != silent {
				c.Stop(id)
				c.StartNode(id)
			}
		}
		c.MustPropose(clustertest.NewAllocate("plain", 1)) // what all understand goes on
		wantNotUpgraded(t, tryNext(t, c, "a"), silent+" (has not answered yet)")
		c.Heal()
		c.Eventually("the level is raised once all members were heard", func() bool {
			level, err := c.Leader().RaiseLevel(t.Context())
			return err == nil && level == 2
		})
		if err := tryNext(t, c, "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestAnEarlierVersionHaltsAtTheNextFormat: a member that went back to it stops at the first entry that it does not
// understand, and says so. It does not skip the entry, so it is in step again as soon as it runs the newer version.
func TestAnEarlierVersionHaltsAtTheNextFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, versions(nextVersion, "n1", "n2", "n3"))
		c.CreateTree()
		old := c.Followers()[0].Status().ID
		c.Stop(old)
		if _, err := c.Leader().RaiseLevel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tryNext(t, c, "next"); err != nil {
			t.Fatal(err)
		}
		c.MustPropose(clustertest.NewAllocate("later", 1))
		c.SetVersion(old, nil)
		n := c.StartNode(old)
		c.Eventually("the old version stops", func() bool { return n.Err() != nil })
		if err := n.Err(); !errors.Is(err, fsm.ErrHalted) || !strings.Contains(err.Error(),
			"it raises the feature level of the cluster to 2, but this version understands 1 to 1; run a newer version") {
			t.Errorf("it stopped with %v", err)
		}
		restartAs(c, old, nextVersion)
		c.AwaitConverged()
		c.CheckEqual()
	})
}

// TestANewerVersionJoins: a cluster of the earlier version takes it in, and stays at its level as long as it has
// members of that version. A cluster at the level of the newer version does not take in the earlier one.
func TestANewerVersionJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, raiseLevelAfter(time.Minute), versions(nextVersion, "n4"))
		c.CreateTree()
		joins := func(id string) func() bool {
			return func() bool { return c.Health()[id].Role == cluster.RoleVoter }
		}
		c.AddNode("n4")
		c.EventuallyWithin(5*time.Minute, "n4 is a voter", joins("n4"))
		time.Sleep(5 * time.Minute)
		wantLevel(t, c, "with members of both versions", 1)
		for _, id := range []string{"n1", "n2", "n3"} {
			restartAs(c, id, nextVersion)
			c.AwaitConverged()
		}
		time.Sleep(2 * time.Minute)
		wantLevel(t, c, "with all upgraded", 2)
		c.AddNode("n5")
		time.Sleep(5 * time.Minute)
		if h := c.Health()["n5"]; h.Role == cluster.RoleVoter {
			t.Errorf("the earlier version was taken in: %+v", h)
		}
	})
}

// TestBackupsOfTheNextVersion: a version that does not understand a backup refuses it. One that does restores it only
// with the permission to raise the level.
func TestBackupsOfTheNextVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := versions(nextVersion, "n1", "n2", "n3")
		source := clustertest.Start(t, 3, all)
		source.CreateTree()
		if _, err := source.Leader().RaiseLevel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tryNext(t, source, "next"); err != nil {
			t.Fatal(err)
		}
		file := saveBackup(t, source.Leader(), cluster.ReadOptions{})
		restore := func(c *clustertest.Cluster, mayRaise bool) error {
			_, err := c.Leader().Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: mayRaise}, bytes.NewReader(file))
			return err
		}
		old := clustertest.Start(t, 1)
		if err := restore(old, true); cluster.ReasonOf(err) != cluster.Damaged ||
			!strings.Contains(err.Error(), "it needs feature level 2, but this version has 1: run version test or a newer one") {
			t.Errorf("the earlier version answers %v", err)
		}
		target := clustertest.Start(t, 3, all)
		if err := restore(target, false); cluster.ReasonOf(err) != cluster.Unsafe ||
			!strings.Contains(err.Error(), "--raise-level") {
			t.Errorf("without the permission to raise the level: %v", err)
		}
		wantLevel(t, target, "after a refused restore", 1)
		if err := restore(target, true); err != nil {
			t.Fatal(err)
		}
		target.AwaitConverged()
		wantLevel(t, target, "after the restore", 2)
	})
}
