package systems

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// The tree that all systems have. Its leaves are three levels deep; the limits of these three nodes are checked. They
// are so large that they never deny.
const (
	treeName   = "compare"
	topNode    = "a"
	middleNode = "a/b"
	leafCount  = 1000
	nodeLimit  = 1 << 40
)

func leafNode(i int) string { return "a/b/leaf-" + strconv.Itoa(i%leafCount) }

func (c Case) leafOf(caller int) string {
	if c.Spread {
		return leafNode(caller)
	}
	return leafNode(0)
}

// mostConnections is more than any case has callers, so that connections are kept.
const mostConnections = 2048

// newTransport keeps a connection for each caller. All systems with HTTP/1.1 are called through one like it.
func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConns: mostConnections, MaxIdleConnsPerHost: mostConnections, DisableCompression: true}
}

// leanOptions are the options of the lean client: the codec of the Go client, and no compressed answers.
func leanOptions() []connect.ClientOption {
	return []connect.ClientOption{connect.WithCodec(client.Codec()), connect.WithAcceptCompression("gzip", nil, nil)}
}

// allocations is what the lean client and the Go client have in common.
type allocations = quoratev1connect.AllocationServiceClient

func newLeanClient(transport http.RoundTripper, url string, options ...connect.ClientOption) allocations {
	if options == nil {
		options = leanOptions()
	}
	return quoratev1connect.NewAllocationServiceClient(&http.Client{Transport: transport}, url, options...)
}

// windows counts all windows of the process; it makes ids unique.
var windows atomic.Int64 //nolint:gochecknoglobals // unique over all systems

func pairCallers(c Case, api allocations) callers {
	window := windows.Add(1)
	return func(caller int) callerWork {
		return func(ctx context.Context, it *iteration) error {
			id := fmt.Sprintf("compare-%d-%d", window, it.Number)
			if c.Batch > 1 {
				return batchPair(ctx, it, api, c, caller, id)
			}
			return it.callPair(1, func() error {
				_, err := api.Allocate(ctx, newRequest(id, c.leafOf(caller)))
				return err
			}, func() error {
				_, err := api.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
				return err
			})
		}
	}
}

func newRequest(id, leaf string) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{Id: id, Claims: []*quoratev1.Claim{{
		Tree: treeName, Node: leaf, Amounts: map[string]int64{"cpu": 1, "memory": 1},
	}}}
}

// batchPair allocates a batch in one call and releases it in another. The messages are made within the measured time,
// as the caller of an API does.
func batchPair(ctx context.Context, it *iteration, api allocations, c Case, caller int, prefix string) error {
	ids := make([]string, c.Batch)
	return it.callPair(c.Batch, func() error {
		requests := make([]*quoratev1.AllocateRequest, c.Batch)
		for i := range requests {
			ids[i] = prefix + "-" + strconv.Itoa(i)
			requests[i] = newRequest(ids[i], c.leafOf(caller))
		}
		answer, err := api.BatchAllocate(ctx, &quoratev1.BatchAllocateRequest{Requests: requests})
		if err != nil {
			return err
		}
		granted := 0
		for _, o := range answer.GetOutcomes() {
			if failure := o.GetFailure(); failure != nil {
				return fmt.Errorf("allocate: %s: %s", failure.GetCode(), failure.GetMessage())
			}
			granted++
		}
		return checkCount(granted, c.Batch)
	}, func() error {
		requests := make([]*quoratev1.ReleaseRequest, c.Batch)
		for i, id := range ids {
			requests[i] = &quoratev1.ReleaseRequest{Id: id}
		}
		answer, err := api.BatchRelease(ctx, &quoratev1.BatchReleaseRequest{Requests: requests})
		if err != nil {
			return err
		}
		released := 0
		for _, o := range answer.GetOutcomes() {
			if failure := o.GetFailure(); failure != nil {
				return fmt.Errorf("release: %s: %s", failure.GetCode(), failure.GetMessage())
			}
			released++
		}
		return checkCount(released, c.Batch)
	})
}

func checkCount(got, want int) error {
	if got != want {
		return fmt.Errorf("%d outcomes, want %d", got, want)
	}
	return nil
}

// callTimeout bounds calls outside of windows.
const callTimeout = 10 * time.Second
