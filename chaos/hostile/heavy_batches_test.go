package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// TestHeavyBatches: four callers send batches that keep to all bounds, megabytes each, one after the other. Others still carry
// out a good part of what they do alone, and no server takes much more memory than those records need.
func TestHeavyBatches(t *testing.T) {
	c := startCluster(t, options{})
	c.applyTree(t, 1<<40)
	leader, _ := c.leader(t)
	alone := c.pairs(t, leader, 4, 4*time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	var done atomic.Int64
	var attackers sync.WaitGroup
	for attacker := range 4 {
		attackers.Go(func() {
			calls := c.allocations(t, leader)
			for i := 0; ctx.Err() == nil && i < 400; i++ {
				id := fmt.Sprintf("heavy-%d-%d", attacker, i)
				if sendHeavyBatch(ctx, calls, id) == nil {
					done.Add(1)
				}
			}
		})
	}
	await(t, "no heavy batch was carried out", func() bool { return done.Load() >= 4 })
	before := done.Load()
	beside := c.pairs(t, leader, 4, 6*time.Second)
	batches := done.Load() - before
	cancel()
	attackers.Wait()
	t.Logf("%.0f pairs a second alone, %.0f beside %d heavy batches; the leader took %d MiB at most", alone, beside, batches, leader.memory(t, "VmHWM")>>20)
	if batches == 0 {
		t.Error("no heavy batch was carried out beside the others, so this shows nothing")
	}
	if beside < alone/10 {
		t.Errorf("%.0f of %.0f pairs a second are left beside heavy batches", beside, alone)
	}
}

// sendHeavyBatch allocates records of some 24 KB each, together the most that a body may have, and releases them.
func sendHeavyBatch(ctx context.Context, calls quoratev1connect.AllocationServiceClient, id string) error {
	const records = 150
	allocate, release := &quoratev1.BatchAllocateRequest{}, &quoratev1.BatchReleaseRequest{}
	for r := range records {
		heavy := want(fmt.Sprintf("%s-%d", id, r), 1)
		heavy.Labels, heavy.UserData = map[string]string{}, map[string]string{}
		for i := range 32 {
			heavy.Labels[fmt.Sprintf("label-%02d", i)] = strings.Repeat("l", 256)
		}
		for i := range 15 {
			heavy.UserData[fmt.Sprintf("data-%02d", i)] = strings.Repeat("d", 1024)
		}
		allocate.Requests, release.Ids = append(allocate.GetRequests(), heavy), append(release.GetIds(), heavy.GetId())
	}
	if _, err := calls.BatchAllocate(ctx, allocate); err != nil {
		return err
	}
	_, err := calls.BatchRelease(ctx, release)
	return err
}
