package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// batchServer denies requests whose id begins with "deny" and grants all others, without sockets and in virtual time. A
// call takes a millisecond each way.
type batchServer struct {
	quoratev1connect.UnimplementedAllocationServiceHandler

	mu      sync.Mutex
	unary   int
	batches [][]string          // ids of each batch
	bytes   int                 // of the largest batch
	tokens  map[string][]string // Authorization by id
	times   map[string]int      // how often an id arrived
	stall   chan struct{}       // if not nil, calls wait until it is closed
	lose    int                 // answers to lose
	refuse  bool                // refuse batches as such
}

func newBatchServer() *batchServer {
	return &batchServer{times: map[string]int{}, tokens: map[string][]string{}}
}

func (s *batchServer) client(t testing.TB, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(playServers, append([]client.Option{client.WithHTTPClient(s)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Do is the network.
func (s *batchServer) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	stall := s.stall
	s.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	s.mu.Lock()
	s.bytes = max(s.bytes, int(r.ContentLength))
	s.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(s))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, r)
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lose > 0 {
		s.lose--
		return nil, errors.New("reset by the test")
	}
	return answer.Result(), nil
}

// setStall makes calls wait until the returned function is called.
func (s *batchServer) setStall() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stall := make(chan struct{})
	s.stall = stall
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stall = nil
		close(stall)
	}
}

func (s *batchServer) Allocate(
	ctx context.Context, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unary++
	return s.allocate(ctx, r)
}

func (s *batchServer) allocate(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	s.times[r.GetId()]++
	if info, found := connect.CallInfoForHandlerContext(ctx); found {
		s.tokens[r.GetId()] = append(s.tokens[r.GetId()], info.RequestHeader().Get("Authorization"))
	}
	if r.GetId()[:1] == "d" {
		failure := connect.NewError(connect.CodeResourceExhausted, errors.New("denied: "+r.GetId()))
		if detail, err := connect.NewErrorDetail(inTheWay()); err == nil {
			failure.AddDetail(detail)
		}
		return nil, failure
	}
	return &quoratev1.AllocateResponse{Allocation: &quoratev1.Allocation{Id: r.GetId()}}, nil
}

func (s *batchServer) BatchAllocate(
	ctx context.Context, r *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no batches here"))
	}
	answer, ids := &quoratev1.BatchAllocateResponse{}, []string(nil)
	for _, one := range r.GetRequests() {
		ids = append(ids, one.GetId())
		granted, err := s.allocate(ctx, one)
		outcome := &quoratev1.AllocateOutcome{Outcome: &quoratev1.AllocateOutcome_Granted{Granted: granted}}
		if failed := (*connect.Error)(nil); errors.As(err, &failed) {
			outcome.Outcome = &quoratev1.AllocateOutcome_Failure{Failure: &quoratev1.Failure{
				Code: failed.Code().String(), Message: failed.Message(), Decision: inTheWay(),
			}}
		}
		answer.Outcomes = append(answer.Outcomes, outcome)
	}
	s.batches = append(s.batches, ids)
	return answer, nil
}

func named(id string, size int) *quoratev1.AllocateRequest {
	r := &quoratev1.AllocateRequest{Id: id, Claims: []*quoratev1.Claim{{Tree: "ci"}}}
	if size > 0 {
		r.Labels = map[string]string{"padding": fmt.Sprintf("%*d", size, 0)}
	}
	return r
}

// callTogether makes calls at one moment, with ids made of a letter and a number, and returns their errors.
func callTogether(ctx context.Context, t *testing.T, c *client.Client, letter string, calls, size int) []error {
	t.Helper()
	failures := make([]error, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			id := fmt.Sprintf("%s-%d", letter, i)
			answer, err := c.Allocations.Allocate(ctx, named(id, size))
			failures[i] = err
			if err == nil && answer.GetAllocation().GetId() != id {
				t.Errorf("%s got the answer of %s", id, answer.GetAllocation().GetId())
			}
		})
	}
	all.Wait()
	return failures
}
