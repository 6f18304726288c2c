package clustertest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
	"github.com/quorate/quorate/quota"
)

func saveBackup(t *testing.T, n *cluster.Node, o cluster.ReadOptions) []byte {
	t.Helper()
	var file bytes.Buffer
	if _, err := n.Save(t.Context(), o, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func mustRestore(t *testing.T, c *clustertest.Cluster, file []byte) cluster.RestoreResult {
	t.Helper()
	var done cluster.RestoreResult
	c.Eventually("a restore", func() bool {
		var err error
		done, err = c.Leader().Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true}, bytes.NewReader(file))
		return err == nil
	})
	return done
}

// TestABackupOfAFollowerHoldsEverythingAcknowledged: a backup is as fresh as a linearizable read; a stale one needs no
// leader.
func TestABackupOfAFollowerHoldsEverythingAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		for i := range 20 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
			contents, err := backup.Read(
				bytes.NewReader(saveBackup(t, c.Followers()[0], cluster.ReadOptions{})), fsm.Options{},
				nil)
			if err != nil || contents.Counts.Held != uint64(i+1) || contents.Stale {
				t.Fatalf("after %d grants the backup holds %+v, %v", i+1, contents, err)
			}
		}
		alone := c.Followers()[0]
		c.Isolate(alone.Status().ID)
		c.Eventually("no leader is known", func() bool { _, known := alone.Leader(); return !known })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := alone.Save(ctx, cluster.ReadOptions{},
			new(bytes.Buffer)); cluster.ReasonOf(err) != cluster.NoLeader {
			t.Errorf("a node without a leader saves as if it had one: %v", err)
		}
		contents, err := backup.Read(
			bytes.NewReader(saveBackup(t, alone, cluster.ReadOptions{Stale: true})), fsm.Options{},
			nil)
		if err != nil || !contents.Stale || contents.Counts.Held != 20 {
			t.Errorf("its stale backup is %+v, %v", contents, err)
		}
	})
}

// TestARestoreUnderLoad: afterwards all nodes have the same state, in memory and on disk, and fences have grown (P5).
func TestARestoreUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig(shortLogs))
		c.CreateTree()
		for i := range 10 {
			c.MustPropose(clustertest.NewAllocate(fmt.Sprint("a", i), 1))
		}
		file := saveBackup(t, c.Leader(), cluster.ReadOptions{})
		lost := c.MustPropose(clustertest.NewAllocate("after-the-backup", 1)).Allocation.Info()
		now := c.Leader().Status().AppliedIndex
		load := c.StartLoad(4)
		time.Sleep(time.Second)
		done := mustRestore(t, c, file)
		time.Sleep(time.Second)
		load.Stop()
		if done.Index <= now || done.Backup.Counts.Held != 10 || done.Header.Fence < lost.Fence+fsm.FenceGap {
			t.Errorf("restored %+v; the last fence before was %d", done, lost.Fence)
		}
		again := c.MustPropose(clustertest.NewAllocate("after-the-backup", 1))
		if again.Repeated || again.Allocation.Info().Fence <= done.Header.Fence {
			t.Errorf("what the backup did not hold is granted as %+v", again.Allocation.Info())
		}
		c.CheckEqual()
		for _, id := range []string{"n1", "n2", "n3"} {
			c.Stop(id)
		}
		c.StartMissing()
		c.CheckEqual()
		if used, _, err := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{}); err != nil || used < 11 {
			t.Errorf("used %d, %v", used, err)
		}
	})
}

// TestANewClusterGoesOnFromABackup: fences, revisions and ledger time continue, leases get their whole TTL again (P4)
// and then end, and a node that was down catches up with all of it.
func TestANewClusterGoesOnFromABackup(t *testing.T) {
	var file []byte
	var before quota.Instant
	var lease quota.AllocationInfo
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		c.CreateTree()
		time.Sleep(time.Hour)
		request := clustertest.NewAllocate("lease", 5)
		request.TTL = 60_000
		lease = c.MustPropose(request).Allocation.Info()
		time.Sleep(50 * time.Second)
		c.MustPropose(clustertest.NewAllocate("held", 7))
		file = saveBackup(t, c.Leader(), cluster.ReadOptions{})
		_, info, _ := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{})
		before = info.Now
	})
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		away := c.Followers()[0].Status().ID
		c.Isolate(away)
		mustRestore(t, c, file)
		a, now := lookUp(t, c.Leader(), "lease")
		if now < before || a.State != quota.Held || a.Fence != lease.Fence || a.ExpiresAt < now+59_000 ||
			a.ExpiresAt > now+60_000 {
			t.Errorf("at %d, after %d, the lease is %+v", now, before, a)
		}
		c.Heal()
		c.CheckEqual()
		time.Sleep(70 * time.Second)
		if a, now := lookUp(t, c.Node(away), "lease"); a.State != quota.Expired || now < before+60_000 {
			t.Errorf("ledger time stands still: at %d the lease is %+v", now, a)
		}
		next := c.MustPropose(clustertest.NewAllocate("next", 1)).Allocation.Info()
		if next.Fence < lease.Fence+fsm.FenceGap {
			t.Errorf("a token of the lost cluster may be given again: %d after %d", next.Fence, lease.Fence)
		}
		c.CheckEqual()
	})
}

// TestABadBackupChangesNothing: it is refused before the first entry.
func TestABadBackupChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		file := saveBackup(t, c.Leader(), cluster.ReadOptions{})
		before := c.CheckEqual()
		for name, bad := range map[string][]byte{
			"cut": file[:len(file)-10], "empty": nil, "flipped": flipByte(file, len(file)/2),
			"longer": append(bytes.Clone(file), 'x'),
		} {
			_, err := c.Leader().Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true}, bytes.NewReader(bad))
			var failed *cluster.Error
			if !errors.As(err, &failed) || failed.Reason != cluster.Damaged || !failed.NotApplied {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := c.Followers()[0].Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true},
			bytes.NewReader(file)); cluster.ReasonOf(err) != cluster.NotLeader {
			t.Errorf("a follower restores: %v", err)
		}
		if !bytes.Equal(before, c.CheckEqual()) {
			t.Error("something was changed")
		}
		old := c.Followers()[0].Status().ID
		c.OverrideStatus(old, func(s *cluster.NodeStatus) { s.FeatureLevel = 0 })
		c.Eventually("the old member is heard", func() bool {
			return slices.ContainsFunc(c.Leader().Members(), func(m cluster.Member) bool {
				return m.ID == old && m.FeatureLevel == 0
			})
		})
		if _, err := c.Leader().Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true},
			bytes.NewReader(file)); cluster.ReasonOf(err) != cluster.NotUpgraded {
			t.Errorf("restored although a member is too old: %v", err)
		}
		if !bytes.Equal(before, c.CheckEqual()) {
			t.Error("something was changed while a member was too old")
		}
	})
}

func flipByte(file []byte, at int) []byte {
	bad := bytes.Clone(file)
	bad[at] ^= 1
	return bad
}

// TestOneRestoreAtATime: the second is refused, and the first is not disturbed.
func TestOneRestoreAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		file := saveBackup(t, c.Leader(), cluster.ReadOptions{})
		slow := &slowReader{Reader: bytes.NewReader(file)}
		first := make(chan error, 1)
		go func() {
			_, err := c.Leader().Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true}, slow)
			first <- err
		}()
		time.Sleep(time.Second)
		if _, err := c.Leader().Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true},
			bytes.NewReader(file)); cluster.ReasonOf(err) != cluster.Busy {
			t.Errorf("the second restore: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first restore: %v", err)
		}
		c.CheckEqual()
	})
}

type slowReader struct{ *bytes.Reader }

func (r *slowReader) Read(data []byte) (int, error) {
	time.Sleep(2 * time.Second)
	return r.Reader.Read(data)
}

// TestALeaderLostDuringARestore: whenever that happens, afterwards all nodes have either all of the backup or nothing
// of it, as the answer says.
func TestALeaderLostDuringARestore(t *testing.T) {
	outcomes := map[bool]int{}
	for step := range 16 {
		synctest.Test(t, func(t *testing.T) {
			c := clustertest.Start(t, 3)
			c.CreateTree()
			c.MustPropose(largeAllocate("kept", 40))
			file := saveBackup(t, c.Leader(), cluster.ReadOptions{})
			c.MustPropose(clustertest.NewAllocate("after-the-backup", 1))
			leader := c.Leader()
			answer := make(chan error, 1)
			go func() {
				_, err := leader.Restore(context.Background(), cluster.RestoreOptions{RaiseLevel: true},
					bytes.NewReader(file))
				answer <- err
			}()
			time.Sleep(time.Duration(step) * 2 * time.Millisecond)
			c.Isolate(leader.Status().ID)
			c.MustPropose(clustertest.NewAllocate("meanwhile", 1))
			c.Heal()
			err := <-answer
			state := c.CheckEqual() // a snapshot can be taken: nothing is left unfinished
			used, _, failed := clustertest.ReadUsed(c.Leader(), cluster.ReadOptions{})
			restored := used == 41
			if failed != nil || !restored && used != 42 ||
				restored == bytes.Contains(state, []byte("after-the-backup")) {
				t.Errorf("step %d: %d are used, %v: neither all nor nothing was restored", step, used, failed)
			}
			var unclear *cluster.Error
			if err == nil && !restored || errors.As(err, &unclear) && unclear.NotApplied && restored {
				t.Errorf("step %d: the answer was %v, but restored is %v", step, err, restored)
			}
			outcomes[restored]++
			c.StartMissing()
		})
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("the leader was never lost early, or never late: %v", outcomes)
	}
}

func largeAllocate(id string, amount quota.Amount) quota.Allocate {
	request := clustertest.NewAllocate(id, amount)
	request.Labels = []quota.Label{{Key: "text", Value: strings.Repeat("x", 60)}}
	return request
}

// untouchedReader fails the test if it is read.
type untouchedReader struct{ t *testing.T }

func (u untouchedReader) Read([]byte) (int, error) {
	u.t.Error("a restore that must be refused read from the file")
	return 0, io.ErrUnexpectedEOF
}

// TestARestoreIsRefusedBeforeItsFileIsRead: because the disk lacks space.
func TestARestoreIsRefusedBeforeItsFileIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, disks := startWithSmallDisks(t, 3)
		file := saveBackup(t, c.Leader(), cluster.ReadOptions{})
		leader := c.Leader()
		before := leader.Level().Current
		options := cluster.RestoreOptions{Size: 100 << 20, RaiseLevel: true}
		disks[leader.Status().ID].free.Store(diskReserve + 300<<20 - 1)
		if _, err := leader.Restore(t.Context(), options,
			untouchedReader{t}); cluster.ReasonOf(err) != cluster.DiskFull {
			t.Errorf("a restore without disk space: %v", err)
		}
		if now := leader.Level().Current; now != before {
			t.Errorf("the level is %d after refused restores, want %d", now, before)
		}
		disks[leader.Status().ID].free.Store(1 << 40)
		filling := &fillingReader{
			Reader: bytes.NewReader(file),
			full:   func() { disks[leader.Status().ID].free.Store(diskReserve) },
		}
		if _, err := leader.Restore(t.Context(), cluster.RestoreOptions{RaiseLevel: true, Size: int64(len(file))},
			filling); cluster.ReasonOf(err) != cluster.DiskFull {
			t.Errorf("a restore on a disk that fills up meanwhile: %v", err)
		}
		if leader.Err() != nil {
			t.Errorf("the leader stopped: %v", leader.Err())
		}
		disks[leader.Status().ID].free.Store(1 << 40)
		mustRestore(t, c, file)
		if _, err := c.Leader().Restore(t.Context(), cluster.RestoreOptions{Size: int64(len(file))},
			bytes.NewReader(file)); err != nil {
			t.Errorf("a restore at the level that the cluster has: %v", err)
		}
	})
}

// fillingReader is a file during whose reading the disk fills up.
type fillingReader struct {
	*bytes.Reader
	full func()
}

func (r *fillingReader) Read(data []byte) (int, error) {
	r.full()
	return r.Reader.Read(data)
}
