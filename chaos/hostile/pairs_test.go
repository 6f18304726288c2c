package hostile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/verify"
)

// pairsPerSecond counts pairs that succeeded. A failed pair is not an error.
func (c *cluster) pairsPerSecond(t *testing.T, n *node, callers int, span time.Duration) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	done := make(chan int, callers)
	begun := time.Now()
	for caller := range callers {
		calls := c.allocationClient(t, n)
		go func() {
			count := 0
			for i := 0; ctx.Err() == nil; i++ {
				if allocateAndRelease(ctx, calls, fmt.Sprintf("pair-%d-%d-%d", begun.UnixNano(), caller, i)) == nil {
					count++
				} else {
					time.Sleep(5 * time.Millisecond)
				}
			}
			done <- count
		}()
	}
	total := 0
	for range callers {
		total += <-done
	}
	return float64(total) / time.Since(begun).Seconds()
}

func allocateAndRelease(ctx context.Context, calls quoratev1connect.AllocationServiceClient, id string) error {
	_, err := calls.Allocate(ctx, requestCores(id, 1))
	_, ended := calls.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	return errors.Join(err, ended)
}

// TestClusterWithoutAttack: what the other tests check holds without an attack.
func TestClusterWithoutAttack(t *testing.T) {
	for name, o := range map[string]clusterOptions{"plain": {}, "encrypted": {encrypted: true}} {
		t.Run(name, func(t *testing.T) {
			if !o.encrypted {
				verify.Only(t)
			}
			c := startCluster(t, o)
			c.applyTree(t, 100)
			_, follower := c.findLeader(t)
			waitFor(t, "no pair was carried out",
				func() bool { return c.pairsPerSecond(t, follower, 4, 2*time.Second) > 0 })
			if end := runCommand(t, append([]string{"usage", "t"}, c.clientFlags(follower)...)...); end.code != 0 {
				t.Errorf("%+v", end)
			}
			if follower.memoryOf(t, "VmHWM") < follower.memoryOf(t, "VmRSS")/2 {
				t.Error("the most memory is less than the present one")
			}
			follower.Kill()
			follower.Start(t)
			c.awaitReady(t)
		})
	}
}
