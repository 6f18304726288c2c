package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

func TestConcurrentProposalsShareEntriesAndGetTheirOwnOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		leader := c.Leader()
		before := leader.Status().LastIndex
		const callers, calls = 500, 4
		var busy sync.WaitGroup
		for caller := range callers {
			busy.Go(func() {
				for i := range calls {
					id := fmt.Sprintf("%d-%d", caller, i)
					outcome, err := clustertest.Propose(leader, clustertest.NewAllocate(id, 1))
					if err != nil || outcome.Allocation == nil || outcome.Allocation.Info().ID != id {
						t.Errorf("%s got %+v, %v", id, outcome, err)
					}
				}
			})
		}
		busy.Wait()
		entries := leader.Status().LastIndex - before
		if entries > callers*calls/20 {
			t.Errorf("%d proposals took %d entries", callers*calls, entries)
		}
		if used, _, err := clustertest.ReadUsed(leader, cluster.ReadOptions{}); err != nil || used != callers*calls {
			t.Errorf("used %d, %v; want %d", used, err, callers*calls)
		}
		c.CheckEqual()
	})
}

func TestCommandsOfOneCallAreAppliedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		for _, count := range []int{10, 3000} {
			var commands []quota.Command
			for i := range count {
				id := fmt.Sprintf("%d-%d", count, i/2)
				if i%2 == 0 {
					commands = append(commands, clustertest.NewAllocate(id, clustertest.TreeLimit))
				} else {
					commands = append(commands, quota.Release{ID: id})
				}
			}
			before := c.Leader().Status().LastIndex
			outcomes, index, err := c.Leader().Propose(t.Context(), commands...)
			if err != nil || len(outcomes) != count {
				t.Fatalf("%d outcomes for %d commands, %v", len(outcomes), count, err)
			}
			for i, o := range outcomes {
				if o.Allocation == nil {
					t.Errorf("command %d of %d: %+v", i, count, o)
				}
			}
			if want := before + uint64(count+1023)/1024; index < want || index > want+2 {
				t.Errorf("%d commands end at index %d, want about %d", count, index, want)
			}
		}
	})
}

func TestACallerWhoseTimeEndsLearnsWhatMayHaveHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		c.CreateTree()
		leader := c.Leader()
		c.Network().SetDelay(func(_, _ raft.ServerID) time.Duration { return 200 * time.Millisecond })
		var written, waiting int
		for i := range 6 {
			// Longer than a command waits for the entry in flight, shorter than the entry takes.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, _, err := leader.Propose(ctx, clustertest.NewAllocate(fmt.Sprint(i), 1))
			cancel()
			var e *cluster.Error
			if !errors.As(err, &e) || e.Reason != cluster.Deadline || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want DEADLINE", err)
			}
			if e.NotApplied {
				waiting++
			} else {
				written++
			}
		}
		if written != 4 || waiting != 2 {
			t.Errorf("%d were written and %d waited; want 4 (as many as may be under way) and 2", written, waiting)
		}
		time.Sleep(5 * time.Second)
		if used, _, err := clustertest.ReadUsed(leader, cluster.ReadOptions{}); err != nil || used != 4 {
			t.Errorf("used %d, %v; want what was written and nothing that was not", used, err)
		}
	})
}
