package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// serveExample stands for a real server, which "quorate server run" starts.
func serveExample(accounts int) (url string, stop func()) {
	p := newFakeCluster()
	p.room = accounts
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(p))
	server := httptest.NewServer(mux)
	return server.URL, server.Close
}

// A job leases a cloud account, waits for it if there is none, and works for as long as it has it.
func ExampleClient_Acquire() {
	server, stop := serveExample(1)
	defer stop()

	c, err := client.New([]string{server})
	if err != nil {
		fmt.Println(err)
		return
	}
	waiting, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	lease, err := c.Acquire(waiting, &quoratev1.AllocateRequest{
		TtlMs: time.Minute.Milliseconds(),
		Claims: []*quoratev1.Claim{{
			Tree: "ci", Node: "tenants/web", Items: []*quoratev1.ItemPick{{Resource: "account"}},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	work := func(ctx context.Context, account string, fence uint64) error {
		fmt.Println("working with", account, "and fence", fence)
		return ctx.Err()
	}
	if err := work(lease.Context(), lease.Items()[0], lease.Fence()); err != nil {
		fmt.Println("stopped:", context.Cause(lease.Context()))
	}
	if err := lease.Release(context.Background()); err != nil {
		fmt.Println("it will expire by itself:", err)
	}
	// Output: working with account-0 and fence 1
}

// A denial lists every limit that the request would exceed.
func ExampleDeniedError() {
	server, stop := serveExample(0)
	defer stop()

	c, err := client.New([]string{server})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Acquire(context.Background(), &quoratev1.AllocateRequest{
		Claims: []*quoratev1.Claim{{Tree: "ci", Items: []*quoratev1.ItemPick{{Resource: "account"}}}},
	})
	denied, timedOut := (*client.DeniedError)(nil), (*client.TimedOutError)(nil)
	switch {
	case errors.As(err, &denied):
		for _, v := range denied.Decision.GetViolations() {
			fmt.Printf("%s has %d %s, and %d are held\n", v.GetTree(), v.GetLimit(), v.GetResource(), v.GetUsed())
		}
	case errors.As(err, &timedOut):
		fmt.Println("waited in vain for", timedOut.Waited)
	case errors.Is(err, client.ErrUnavailable):
		fmt.Println("no server answers")
	}
	// Output: ci has 1 accounts, and 1 are held
}

// A job can show what it waits for.
func ExampleWithProgress() {
	server, stop := serveExample(1)
	defer stop()

	c, err := client.New([]string{server})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := &quoratev1.AllocateRequest{
		TtlMs:  time.Minute.Milliseconds(),
		Claims: []*quoratev1.Claim{{Tree: "ci", Items: []*quoratev1.ItemPick{{Resource: "account"}}}},
	}
	first, err := c.Acquire(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := c.Acquire(context.Background(), request, client.WithProgress(func(at client.Progress) {
		if first.Context().Err() != nil {
			return // the leader is known already
		}
		fmt.Println("waiting at position", at.Allocation.GetWaiting().GetPosition())
		if err := first.Release(context.Background()); err != nil {
			fmt.Println(err)
		}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("granted with fence", second.Fence())
	_ = second.Release(context.Background())
	// Output:
	// waiting at position 1
	// granted with fence 2
}

// A gate admits requests from a share of the units of a tree, without a call for each.
func ExampleNewShare() {
	server, stop := serveExample(10)
	defer stop()

	c, err := client.New([]string{server})
	if err != nil {
		fmt.Println(err)
		return
	}
	share, err := client.NewShare(c, client.ShareConfig{
		Tree: "api", Node: "search", Resource: "queries", Step: 50, Min: 50, Max: 500, TTL: 15 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	grant, err := share.Acquire(context.Background(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("running:", grant.Valid())
	grant.Release()
	if err := share.Close(context.Background()); err != nil {
		fmt.Println("the leases expire by themselves:", err)
	}
	// Output: running: true
}

// A process presents the token in a file, which may be replaced while it runs, for example by Kubernetes.
func ExampleWithTokenFile() {
	c, err := client.New([]string{"https://quorate.example.org:7101"}, client.WithTokenFile("/run/secrets/quorate/token"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = c.Identity.WhoAmI(context.Background(), &quoratev1.WhoAmIRequest{})
	// Output: client: token file: open /run/secrets/quorate/token: no such file or directory
}
