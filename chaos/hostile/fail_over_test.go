package hostile

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// killsSetting sets how many leaders TestFailOver kills; docs/performance.md has figures of 12.
const killsSetting = "QUORATE_FAIL_OVER_KILLS"

// TestFailOver kills leaders under load and prints how long nothing was acknowledged. Calls wait 5 s for a leader: in
// at least one fail-over no call may fail for that reason, or fail-over takes as long as clients wait.
func TestFailOver(t *testing.T) {
	verify.Only(t) // measures
	kills := 3
	if text := os.Getenv(killsSetting); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		kills = number
	}
	c := startCluster(t, clusterOptions{})
	c.applyTree(t, 1_000_000)
	var gaps []time.Duration
	patient := false
	for i := range kills {
		leader, _ := c.findLeader(t)
		gap, failed := c.failOver(t, leader, i)
		gaps = append(gaps, gap)
		patient = patient || failed == 0
		leader.Start(t)
		c.awaitReady(t)
	}
	slices.Sort(gaps)
	t.Logf("%d fail-overs: median %v, longest %v, all %v", kills, gaps[len(gaps)/2], gaps[len(gaps)-1], gaps)
	if !patient {
		t.Error("in every fail-over calls gave up before there was a leader")
	}
}

// failOver kills the leader while clients write to the other servers. It returns the longest time without an
// acknowledgement and how many calls failed because there was no leader, not counting calls whose answer was lost
// with the old leader.
func (c *cluster) failOver(t *testing.T, leader *node, round int) (gap time.Duration, failed int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var acknowledged, gaveUp []time.Time
	var callers sync.WaitGroup
	for i, n := range c.nodes {
		if n == leader {
			continue
		}
		calls := c.allocationClient(t, n)
		for j := range 4 {
			callers.Go(func() {
				for k := 0; ctx.Err() == nil; k++ {
					id := fmt.Sprintf("fail-over-%d-%d-%d-%d", round, i, j, k)
					_, err := calls.Allocate(ctx, requestCores(id, 1))
					if err == nil {
						_, err = calls.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
					}
					mu.Lock()
					if err == nil {
						acknowledged = append(acknowledged, time.Now())
					} else if ctx.Err() == nil {
						gaveUp = append(gaveUp, time.Now())
					}
					mu.Unlock()
				}
			})
		}
	}
	time.Sleep(2 * time.Second)
	leader.Kill()
	killed := time.Now()
	waitFor(t, "nothing is acknowledged again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged) > 0 && acknowledged[len(acknowledged)-1].Sub(killed) > 500*time.Millisecond
	})
	time.Sleep(time.Second)
	stop()
	callers.Wait()
	last := killed
	for _, at := range acknowledged {
		if at.After(killed) {
			gap = max(gap, at.Sub(last))
			last = at
		}
	}
	for _, at := range gaveUp {
		if at.Sub(killed) > time.Second {
			failed++
		}
	}
	return gap, failed
}
