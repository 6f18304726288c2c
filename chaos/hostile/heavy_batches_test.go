package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// TestHeavyBatches: four clients send batches within all bounds, megabytes each. Other clients still make progress:
// on two busy cores they keep one pair of seven, and kept one of a hundred when they waited behind all batches. The
// servers keep to their memory limit, beside what the race detector takes.
func TestHeavyBatches(t *testing.T) {
	verify.Only(t) // compares rates
	c := startCluster(t, clusterOptions{args: []string{"--memory-limit", "512"}})
	c.applyTree(t, 100)
	leader, _ := c.findLeader(t)
	alone := c.pairsPerSecond(t, leader, 4, 4*time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body := heavyBatch(t)
	var done atomic.Int64
	var attackers sync.WaitGroup
	for range 4 {
		attackers.Go(func() {
			client := c.httpClient(t, "")
			for i := 0; ctx.Err() == nil && i < 200; i++ {
				if c.postBatch(ctx, client, leader, body) {
					done.Add(1)
				}
			}
		})
	}
	waitFor(t, "no heavy batch was carried out", func() bool { return done.Load() >= 4 })
	before := done.Load()
	beside := c.pairsPerSecond(t, leader, 4, 8*time.Second)
	batches := done.Load() - before
	cancel()
	attackers.Wait()
	t.Logf("%.0f pairs a second alone, %.0f beside %d heavy batches; the leader took %d MiB at most", alone, beside,
		batches, leader.memoryOf(t, "VmHWM")>>20)
	if batches == 0 {
		t.Error("no heavy batch was carried out beside the others, so this shows nothing")
	}
	if beside < alone/30 {
		t.Errorf("%.0f of %.0f pairs a second are left for others", beside, alone)
	}
	if took := leader.memoryOf(t, "VmHWM"); took > 1<<30 {
		t.Errorf("the leader took %d MiB", took>>20)
	}
}

// heavyBatch returns a batch close to the largest body. Its requests are denied, so that it can be repeated.
func heavyBatch(t *testing.T) []byte {
	t.Helper()
	batch := &quoratev1.BatchAllocateRequest{}
	for r := range 160 {
		heavy := requestCores(fmt.Sprintf("heavy-%d", r), 1000)
		heavy.Labels, heavy.UserData = map[string]string{}, map[string]string{}
		for i := range 32 {
			heavy.Labels[fmt.Sprintf("label-%02d", i)] = strings.Repeat("l", 256)
		}
		for i := range 15 {
			heavy.UserData[fmt.Sprintf("data-%02d", i)] = strings.Repeat("d", 1024)
		}
		batch.Requests = append(batch.GetRequests(), heavy)
	}
	body, err := proto.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 3<<20 || len(body) > 4<<20 {
		t.Fatalf("the batch has %d bytes", len(body))
	}
	return body
}

// postBatch sends an encoded batch and reports whether it was carried out.
func (c *cluster) postBatch(ctx context.Context, client *http.Client, to *node, body []byte) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		to.URL()+"/quorate.v1.AllocationService/BatchAllocate", bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/proto")
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}
