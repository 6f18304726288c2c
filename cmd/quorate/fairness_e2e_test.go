package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// tenant calls one server as the user of a token, without the repetitions of the client.
type tenant struct {
	token string
	quoratev1connect.AllocationServiceClient

	events quoratev1connect.EventServiceClient
}

func newTenant(t *testing.T, f serverFlags, tokenFile string) *tenant {
	t.Helper()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	c := &tenant{token: strings.TrimSpace(string(token))}
	c.AllocationServiceClient = quoratev1connect.NewAllocationServiceClient(c, f.baseURL())
	c.events = quoratev1connect.NewEventServiceClient(c, f.baseURL())
	return c
}

// Do sends a request with the token.
func (c *tenant) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+c.token)
	return http.DefaultClient.Do(r)
}

func (c *tenant) watch(ctx context.Context) error {
	stream, err := c.events.WatchEvents(ctx, &quoratev1.WatchEventsRequest{})
	if err == nil {
		stream.Receive()
		err = stream.Err()
	}
	return err
}

func (c *tenant) wait(ctx context.Context, id string, poll time.Duration) error {
	request := oneClaim(id, 40)
	request.Claims[0].Tree, request.Claims[0].Node = "cern", "atlas/physics"
	request.Mode, request.PollMs = quoratev1.Mode_MODE_WAIT, poll.Milliseconds()
	_, err := c.Allocate(ctx, request)
	return err
}

func wantUserShare(t *testing.T, what string, err error) {
	t.Helper()
	if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "user account/hans has ") ||
		!strings.Contains(err.Error(), "the share of one user is") {
		t.Errorf("%s of a user beyond its share: %v", what, err)
	}
}

// TestOneTenantFloodsAServer: one user opens as many streams and waiting calls as it can, on a follower, and sends
// calls without a pause. It is refused beyond its share, and another user's watch, waiting call and writes go through,
// on each server.
func TestOneTenantFloodsAServer(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t, func(serverFlags) []string {
		return []string{"--max-streams", "80", "--max-calls", "40"}
	})
	in := func(name string) string { return filepath.Join(tokens, name) }
	playSteps(t, list[0], []step{
		{"allocate --id all --at cern:atlas/physics --amount cores=1 --token-file " + in("hans"), 0, "granted"},
		{"allocation list --token-file " + in("hans"), 0, "filtered: these are the parts that you may see"},
		{"allocation list -o json --token-file " + in("hans"), 0, `"filtered": true`},
		{"allocation list -o json --token-file " + in("admin"), 0, `"allocations"`},
	})
	for _, f := range list {
		hans, heidi := newTenant(t, f, in("hans")), newTenant(t, f, in("heidi"))
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		// A tenth of the places, 8, may wait on the server and on the leader. A call that is refused is made again, since
		// the share of all calls may refuse it before it waits.
		for worker := range 12 {
			flood.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					_, _ = hans.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{})
					_ = hans.wait(ctx, fmt.Sprint("flood-", f.id, worker, "-", i), time.Minute)
				}
			})
		}
		var refused error
		for range 20 {
			if refused = hans.watch(ctx); refused != nil {
				break
			}
		}
		wantUserShare(t, "a watch on "+f.id, refused)
		awaitCondition(t, "no waiting call is refused", func() bool {
			refused = hans.wait(ctx, "one-more", time.Second)
			return refused != nil
		})
		wantUserShare(t, "a waiting call on "+f.id, refused)
		within, end := context.WithTimeout(ctx, time.Minute)
		if err := heidi.watch(within); err != nil {
			t.Errorf("a watch of another user on %s: %v", f.id, err)
		}
		if err := heidi.wait(within, "heidi-waits-"+f.id, 100*time.Millisecond); err != nil {
			t.Errorf("a waiting call of another user on %s: %v", f.id, err)
		}
		for i := range 20 {
			request := oneClaim(fmt.Sprint("heidi-", f.id, i), 1)
			request.Claims[0].Tree, request.Claims[0].Node = "cern", "atlas/physics"
			if _, err := heidi.Allocate(within, request); err != nil && connect.CodeOf(err) == connect.CodeUnavailable {
				t.Errorf("call %d of another user on %s: %v", i, f.id, err)
			}
		}
		end()
		cancel()
		flood.Wait()
	}
}
