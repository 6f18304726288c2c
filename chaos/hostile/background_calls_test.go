package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/pki"
)

// retrySpan is how long a client retries a failed call. A server recovers within that time.
const retrySpan = 15 * time.Second

// backgroundCalls has one client for each server. It always uses the present certificates of the client.
type backgroundCalls struct {
	end     context.CancelFunc
	callers sync.WaitGroup

	mu      sync.Mutex
	rounds  map[string]int
	repeats int
	failed  error
}

func (c *cluster) startTraffic(t *testing.T) *backgroundCalls {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	traffic := &backgroundCalls{end: cancel, rounds: map[string]int{}}
	for _, n := range c.nodes {
		traffic.callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := traffic.retryCall(ctx, func(ctx context.Context) error {
					return c.readAndWrite(ctx, n,
						fmt.Sprintf("%s-%d", n.ID, i))
				})
				traffic.addRound(n.ID, err)
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); traffic.callers.Wait() })
	return traffic
}

func (c *cluster) readAndWrite(ctx context.Context, n *node, id string) error {
	files := pki.Files{CA: c.certs.CA(), Cert: c.certs.Cert("client"), Key: c.certs.Key("client")}
	config, err := pki.ClientConfig(files, "localhost")
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true,
		DisableKeepAlives: true,
	}}
	trees := quoratev1connect.NewTreeServiceClient(client, n.URL())
	if _, err := trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: "t"}); err != nil {
		return fmt.Errorf("read at %s: %w", n.ID, err)
	}
	if err := allocateAndRelease(ctx, quoratev1connect.NewAllocationServiceClient(client, n.URL()),
		id); err != nil {
		return fmt.Errorf("write at %s: %w", n.ID, err)
	}
	return nil
}

func (f *backgroundCalls) retryCall(ctx context.Context, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retrySpan)
	defer cancel()
	for {
		err := attempt(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if connect.CodeOf(err) == connect.CodeFailedPrecondition {
			return err
		}
		f.mu.Lock()
		f.repeats++
		f.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
}

func (f *backgroundCalls) addRound(id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rounds[id]++
	if err != nil && f.failed == nil && !errors.Is(err, context.Canceled) &&
		connect.CodeOf(err) != connect.CodeCanceled {
		f.failed = fmt.Errorf("round %d of %s failed for %v: %w", f.rounds[id], id, retrySpan, err)
	}
}

func (f *backgroundCalls) awaitEach(t *testing.T, more int) {
	t.Helper()
	begun, _ := f.currentRounds()
	waitFor(t, "the callers do not go on", func() bool {
		now, failed := f.currentRounds()
		if failed != nil {
			t.Fatal(failed)
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			if now[id] < begun[id]+more {
				return false
			}
		}
		return true
	})
}

func (f *backgroundCalls) currentRounds() (rounds map[string]int, failed error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.rounds), f.failed
}

// stopCalls stops the clients and checks that none failed for longer than retrySpan.
func (f *backgroundCalls) stopCalls(t *testing.T) {
	t.Helper()
	f.end()
	f.callers.Wait()
	if f.failed != nil {
		t.Error(f.failed)
	}
	t.Logf("%v rounds of a read and a write, %d attempts were repeated", f.rounds, f.repeats)
}
