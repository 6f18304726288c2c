package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// fakeCluster is a cluster in this process: a few servers over one small ledger of leases, without sockets, so that it
// runs in virtual time. Its ledger time is the time since its creation, less the time without a leader.
type fakeCluster struct {
	quoratev1connect.UnimplementedAllocationServiceHandler
	quoratev1connect.UnimplementedEventServiceHandler

	began time.Time

	mu      sync.Mutex
	gone    map[string]bool // servers that do not answer
	room    int             // how many leases fit; later requests wait
	held    map[string]*quoratev1.Allocation
	ended   map[string]quoratev1.AllocationState
	queue   []string
	fence   uint64
	stopped time.Duration // ledger time that did not pass
	halted  time.Time     // since when there is no leader; zero if there is one
	lose    int           // number of answers to lose
	calls   map[string]int
	batches []int // sizes of renewals
	changes []*quoratev1.WatchEventsResponse
	changed chan struct{}
	cuts    int // streams to abort
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{
		began: time.Now(), gone: map[string]bool{}, room: 1 << 20, held: map[string]*quoratev1.Allocation{},
		ended: map[string]quoratev1.AllocationState{}, calls: map[string]int{}, changed: make(chan struct{}),
	}
}

var playServers = []string{"http://n1", "http://n2", "http://n3"}

func (p *fakeCluster) client(t testing.TB, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(playServers, append([]client.Option{client.WithHTTPClient(p)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Do is the network: it delays calls by a millisecond each way, loses answers, and cannot reach stopped servers.
func (p *fakeCluster) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	p.mu.Lock()
	gone := p.gone[r.URL.Host]
	p.mu.Unlock()
	if gone {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	mux := http.NewServeMux()
	mux.Handle(quoratev1connect.NewAllocationServiceHandler(p))
	mux.Handle(quoratev1connect.NewEventServiceHandler(p))
	mux.Handle(quoratev1connect.NewChangeServiceHandler(p))
	body, writer := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
	answer := &answering{ResponseRecorder: httptest.NewRecorder(), writer: writer, begun: make(chan struct{})}
	go func() {
		mux.ServeHTTP(answer, r)
		answer.begin()
		_ = writer.Close() // the reader went away
	}()
	select {
	case <-answer.begun:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	time.Sleep(time.Millisecond)
	if p.loses() {
		_ = body.Close() // it is not read
		return nil, &net.OpError{Op: "read", Err: errors.New("reset by the test")}
	}
	return &http.Response{StatusCode: answer.Code, Header: answer.Header(), Body: body, Request: r}, nil
}

func (p *fakeCluster) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose == 0 {
		return false
	}
	p.lose--
	return true
}

// answering lets the caller read an answer while it is written.
type answering struct {
	*httptest.ResponseRecorder
	writer *io.PipeWriter
	begun  chan struct{}
	once   sync.Once
}

func (a *answering) begin() { a.once.Do(func() { close(a.begun) }) }

// WriteHeader begins the answer.
func (a *answering) WriteHeader(code int) {
	a.Code = code
	a.begin()
}

// Flush begins it too: the recorder would change what is read by then.
func (a *answering) Flush() { a.begin() }

// Write passes a part of it on.
func (a *answering) Write(part []byte) (int, error) {
	a.begin()
	return a.writer.Write(part)
}

func (p *fakeCluster) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.advance()
}

// change replaces a held record by a changed copy, because an answer may still refer to the old one; mu is held.
func (p *fakeCluster) change(id string, how func(*quoratev1.Allocation)) {
	a := proto.CloneOf(p.held[id])
	how(a)
	p.held[id] = a
}

func (p *fakeCluster) count(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[method]
}

func (p *fakeCluster) holdings() map[string]*quoratev1.Allocation {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	return maps.Clone(p.held)
}

func (p *fakeCluster) halt() { p.set(func() { p.halted = time.Now() }) }

func (p *fakeCluster) lead() {
	p.set(func() { p.stopped, p.halted = p.stopped+time.Since(p.halted), time.Time{} })
}

// now returns the ledger time; mu is held.
func (p *fakeCluster) now() int64 {
	now := time.Now()
	if !p.halted.IsZero() {
		now = p.halted
	}
	return (now.Sub(p.began) - p.stopped).Milliseconds()
}

// advance ends expired records and grants the waiting requests that fit; mu is held.
func (p *fakeCluster) advance() {
	now := p.now()
	for id, a := range p.held {
		if a.GetExpiresLedgerMs() > 0 && a.GetExpiresLedgerMs() <= now {
			p.finish(id, quoratev1.AllocationState_ALLOCATION_STATE_EXPIRED)
		}
	}
	for len(p.queue) > 0 && p.granted() < p.room {
		a := p.held[p.queue[0]]
		p.queue = p.queue[1:]
		p.grant(a)
	}
}

func (p *fakeCluster) granted() int { return len(p.held) - len(p.queue) }

func (p *fakeCluster) grant(waiting *quoratev1.Allocation) {
	p.fence++
	a := proto.CloneOf(waiting)
	a.State, a.Fence, a.Waiting = quoratev1.AllocationState_ALLOCATION_STATE_HELD, p.fence, nil
	if a.GetTtlMs() > 0 {
		a.ExpiresLedgerMs = p.now() + a.GetTtlMs()
	}
	p.held[a.GetId()] = a
	p.tell(quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED, a)
}

func (p *fakeCluster) finish(id string, state quoratev1.AllocationState) {
	a := proto.CloneOf(p.held[id])
	a.State = state
	p.ended[id] = state
	delete(p.held, id)
	p.queue = slices.DeleteFunc(p.queue, func(other string) bool { return other == id })
	p.tell(quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_ENDED, a)
}

func (p *fakeCluster) tell(change quoratev1.AllocationChangeKind, a *quoratev1.Allocation) {
	p.changes = append(p.changes, &quoratev1.WatchEventsResponse{
		Payload: &quoratev1.WatchEventsResponse_Change{Change: &quoratev1.AllocationChange{Kind: change, Allocation: a}},
		Index:   uint64(len(p.changes) + 1), Number: 1,
	})
	close(p.changed)
	p.changed = make(chan struct{})
}

// enter begins a call; the caller must defer leave. Without a leader, writes fail.
func (p *fakeCluster) enter(method string) error {
	p.mu.Lock()
	p.calls[method]++
	if !p.halted.IsZero() {
		return refuseWith(connect.CodeUnavailable, &quoratev1.Problem{Reason: "NO_LEADER", NotApplied: true})
	}
	p.advance()
	return nil
}

func (p *fakeCluster) refusal(id string) error {
	if state, ended := p.ended[id]; ended {
		return refuseWith(connect.CodeFailedPrecondition, &quoratev1.Problem{Reason: "ENDED", Field: state.String()})
	}
	return refuseWith(connect.CodeNotFound, &quoratev1.Problem{Reason: "NOT_FOUND"})
}

func inTheWay() *quoratev1.Decision {
	return &quoratev1.Decision{
		Outcome:     quoratev1.Outcome_OUTCOME_WAITING,
		Explanation: "waiting: ci holds 1 of 1 accounts, 1 requested, 1 missing",
		Violations: []*quoratev1.Violation{
			{Tree: "ci", Resource: "accounts", Limit: 1, Used: 1, Requested: 1, Missing: 1},
		},
	}
}

func (p *fakeCluster) Allocate(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	answer, err := p.allocate(r)
	for deadline := time.Now().Add(time.Duration(r.GetPollMs()) * time.Millisecond); err == nil &&
		answer.GetDecision().GetOutcome() == quoratev1.Outcome_OUTCOME_WAITING && time.Now().Before(deadline) &&
		ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
		answer, err = p.allocate(r)
	}
	return answer, err
}

func (p *fakeCluster) allocate(r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	defer p.mu.Unlock()
	if err := p.enter("Allocate"); err != nil {
		return nil, err
	}
	if p.ended[r.GetId()] != 0 {
		return nil, p.refusal(r.GetId())
	}
	if p.held[r.GetId()] == nil {
		if err := p.admit(r); err != nil {
			return nil, err
		}
	}
	a := p.held[r.GetId()]
	answer := &quoratev1.AllocateResponse{
		Allocation: a,
		Write:      &quoratev1.WriteInfo{LedgerTimeMs: p.now()},
		Decision:   &quoratev1.Decision{Outcome: quoratev1.Outcome_OUTCOME_GRANTED},
	}
	if place := slices.Index(p.queue, r.GetId()); place >= 0 {
		waiting := proto.CloneOf(a)
		waiting.Waiting = &quoratev1.Waiting{Position: int64(place + 1), Line: "ci accounts"}
		answer.Allocation, answer.Decision = waiting, inTheWay()
	}
	return answer, nil
}

func (p *fakeCluster) admit(r *quoratev1.AllocateRequest) error {
	a := &quoratev1.Allocation{
		Id:        r.GetId(),
		State:     quoratev1.AllocationState_ALLOCATION_STATE_WAITING,
		TtlMs:     r.GetTtlMs(),
		Principal: r.GetPrincipal(),
	}
	for _, claim := range r.GetClaims() {
		held := &quoratev1.HeldClaim{Tree: claim.GetTree(), Node: claim.GetNode()}
		for _, pick := range claim.GetItems() {
			held.Items = append(
				held.Items,
				&quoratev1.HeldItem{
					Resource: pick.GetResource(),
					Name:     fmt.Sprintf("%s-%d", pick.GetResource(), p.fence),
				},
			)
		}
		a.Claims = append(a.Claims, held)
	}
	if p.granted() < p.room {
		p.grant(a)
		return nil
	}
	if r.GetMode() != quoratev1.Mode_MODE_WAIT || p.room == 0 {
		failure := connect.NewError(connect.CodeResourceExhausted, errors.New("denied: there is no room"))
		if detail, err := connect.NewErrorDetail(inTheWay()); err == nil {
			failure.AddDetail(detail)
		}
		return failure
	}
	p.held[r.GetId()] = a
	p.queue = append(p.queue, r.GetId())
	return nil
}

func (p *fakeCluster) Renew(_ context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	defer p.mu.Unlock()
	if err := p.enter("Renew"); err != nil {
		return nil, err
	}
	return p.renew(r)
}

func (p *fakeCluster) renew(r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	a := p.held[r.GetId()]
	switch {
	case a == nil:
		return nil, p.refusal(r.GetId())
	case a.GetFence() != r.GetFence():
		return nil, refuseWith(connect.CodeAborted, &quoratev1.Problem{Reason: "FENCE_MISMATCH"})
	case a.GetRevokedBy() == nil:
		a = proto.CloneOf(a)
		a.ExpiresLedgerMs = p.now() + a.GetTtlMs()
		p.held[r.GetId()] = a
	}
	return &quoratev1.RenewResponse{Allocation: a, Write: &quoratev1.WriteInfo{LedgerTimeMs: p.now()}}, nil
}

func (p *fakeCluster) BatchRenew(
	_ context.Context,
	r *quoratev1.BatchRenewRequest,
) (*quoratev1.BatchRenewResponse, error) {
	defer p.mu.Unlock()
	if err := p.enter("BatchRenew"); err != nil {
		return nil, err
	}
	p.batches = append(p.batches, len(r.GetRenewals()))
	answer := &quoratev1.BatchRenewResponse{}
	for _, renewal := range r.GetRenewals() {
		renewed, err := p.renew(renewal)
		outcome := &quoratev1.RenewOutcome{Outcome: &quoratev1.RenewOutcome_Renewed{Renewed: renewed}}
		if err != nil {
			outcome.Outcome = &quoratev1.RenewOutcome_Failure{Failure: &quoratev1.Failure{
				Code: connect.CodeOf(err).String(), Message: err.Error(),
			}}
		}
		answer.Outcomes = append(answer.Outcomes, outcome)
	}
	return answer, nil
}

func (p *fakeCluster) Release(_ context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	defer p.mu.Unlock()
	if err := p.enter("Release"); err != nil {
		return nil, err
	}
	if p.held[r.GetId()] == nil && p.ended[r.GetId()] == 0 {
		return nil, p.refusal(r.GetId())
	}
	if p.held[r.GetId()] != nil {
		p.finish(r.GetId(), quoratev1.AllocationState_ALLOCATION_STATE_RELEASED)
		p.advance()
	}
	return &quoratev1.ReleaseResponse{}, nil
}

func (p *fakeCluster) GetAllocation(
	_ context.Context,
	r *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	defer p.mu.Unlock()
	if err := p.enter("GetAllocation"); err != nil {
		return nil, err
	}
	if a := p.held[r.GetId()]; a != nil {
		return &quoratev1.GetAllocationResponse{Allocation: a}, nil
	}
	if state := p.ended[r.GetId()]; state != 0 {
		return &quoratev1.GetAllocationResponse{Allocation: &quoratev1.Allocation{Id: r.GetId(), State: state}}, nil
	}
	return nil, p.refusal(r.GetId())
}

// WatchChanges sends the index of the latest change, and ends after it if the test cuts streams.
func (p *fakeCluster) WatchChanges(
	ctx context.Context, r *quoratev1.WatchChangesRequest, stream *connect.ServerStream[quoratev1.WatchChangesResponse],
) error {
	for at := r.GetAfterIndex(); ; {
		p.mu.Lock()
		now, changed, cut := uint64(len(p.changes)), p.changed, p.cuts > 0
		if cut {
			p.cuts--
		}
		p.mu.Unlock()
		if err := stream.Send(&quoratev1.WatchChangesResponse{Index: now, Heartbeat: now <= at}); err != nil {
			return err
		}
		if at = now; cut {
			return connect.NewError(connect.CodeUnavailable, errors.New("cut off by the test"))
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *fakeCluster) WatchEvents(
	ctx context.Context,
	r *quoratev1.WatchEventsRequest,
	stream *connect.ServerStream[quoratev1.WatchEventsResponse],
) error {
	for at := r.GetAfterIndex(); ; {
		p.mu.Lock()
		p.calls["WatchEvents"]++
		changes, changed, cut := p.changes[min(at, uint64(len(p.changes))):], p.changed, p.cuts > 0
		if cut && len(changes) > 0 {
			p.cuts--
			changes = changes[:1]
		}
		p.mu.Unlock()
		for _, change := range changes {
			at = change.GetIndex()
			if err := stream.Send(change); err != nil {
				return err
			}
		}
		if cut && len(changes) > 0 {
			return connect.NewError(connect.CodeUnavailable, errors.New("cut off by the test"))
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Second):
			if err := stream.Send(&quoratev1.WatchEventsResponse{Index: at, Number: 1}); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
