package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

var errCrash = errors.New("the process was killed")

// callBudget lets a number of calls pass. The next one is the last of the process: it is carried out or not, and fails,
// as do all later ones.
type callBudget struct {
	left      int // calls until the crash; negative for none
	carryOut  bool
	unlimited bool
}

// spend returns whether a call is carried out, and its error.
func (b *callBudget) spend() (carryOut bool, err error) {
	if b.unlimited {
		return true, nil
	}
	b.left--
	switch {
	case b.left > 0:
		return true, nil
	case b.left == 0:
		return b.carryOut, errCrash
	}
	return false, errCrash
}

// fakeQuorate is one node with one limit and a queue in order of arrival.
type fakeQuorate struct {
	*callBudget
	limit   int64
	index   uint64
	fence   uint64
	records []*quoratev1.Allocation // in order of arrival
	report  func(*quoratev1.WatchEventsResponse) error
}

func (q *fakeQuorate) find(id string) *quoratev1.Allocation {
	i := slices.IndexFunc(q.records, func(a *quoratev1.Allocation) bool { return a.GetId() == id })
	if i < 0 {
		return nil
	}
	return q.records[i]
}

func amountOf(claims []*quoratev1.HeldClaim) (sum int64) {
	for _, c := range claims {
		sum += c.GetAmounts()["cores"]
	}
	return sum
}

func (q *fakeQuorate) held() (sum int64) {
	for _, a := range q.records {
		if rank(a) == 1 || rank(a) == 2 {
			sum += amountOf(a.GetClaims())
		}
	}
	return sum
}

func (q *fakeQuorate) heldFor(key string) (sum int64) {
	for _, a := range q.records {
		if owner, _, _ := parseID("p", a.GetId()); owner == key && (rank(a) == 1 || rank(a) == 2) {
			sum += amountOf(a.GetClaims())
		}
	}
	return sum
}

func (q *fakeQuorate) waiting() []*quoratev1.Allocation {
	var waiting []*quoratev1.Allocation
	for _, a := range q.records {
		if rank(a) == 0 {
			waiting = append(waiting, a)
		}
	}
	return waiting
}

// set makes a new version of a record, as the wire does: an answer is not changed later.
func (q *fakeQuorate) set(
	a *quoratev1.Allocation, state quoratev1.AllocationState, change func(*quoratev1.Allocation),
) *quoratev1.Allocation {
	updated := &quoratev1.Allocation{
		Id: a.GetId(), Claims: a.GetClaims(), Labels: a.GetLabels(), State: state, Fence: a.GetFence(),
		RevokedBy: a.GetRevokedBy(), TtlMs: a.GetTtlMs(), Forced: a.GetForced(),
	}
	if change != nil {
		change(updated)
	}
	q.index++
	q.records[slices.Index(q.records, a)] = updated
	if q.report != nil {
		_ = q.report(&quoratev1.WatchEventsResponse{
			Payload: &quoratev1.WatchEventsResponse_Change{Change: &quoratev1.AllocationChange{Allocation: updated}},
			Index:   q.index, Number: 1,
		})
	}
	return updated
}

// drain grants from the head of the queue while requests fit.
func (q *fakeQuorate) drain() {
	for _, a := range q.waiting() {
		if q.held()+amountOf(a.GetClaims()) > q.limit {
			return
		}
		q.fence++
		q.set(a, quoratev1.AllocationState_ALLOCATION_STATE_HELD, func(a *quoratev1.Allocation) { a.Fence = q.fence })
	}
}

func (q *fakeQuorate) end(a *quoratev1.Allocation, state quoratev1.AllocationState) *quoratev1.Allocation {
	ended := q.set(a, state, nil)
	q.drain()
	return ended
}

func (q *fakeQuorate) forgetEnded() {
	q.records = slices.DeleteFunc(q.records, func(a *quoratev1.Allocation) bool { return rank(a) == endedRank })
}

func problem(code connect.Code, reason string) error {
	err := connect.NewError(code, errors.New(reason))
	detail, failure := connect.NewErrorDetail(&quoratev1.Problem{Reason: reason})
	if failure != nil {
		panic(failure)
	}
	err.AddDetail(detail)
	return err
}

func denial(text string) error {
	err := connect.NewError(connect.CodeResourceExhausted, errors.New(text))
	detail, failure := connect.NewErrorDetail(&quoratev1.Decision{Explanation: text})
	if failure != nil {
		panic(failure)
	}
	err.AddDetail(detail)
	return err
}

func (q *fakeQuorate) Allocate(
	_ context.Context, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	carryOut, crash := q.spend()
	if !carryOut {
		return nil, crash
	}
	answer, err := q.allocate(r)
	return answer, cmp.Or(crash, err)
}

func (q *fakeQuorate) allocate(r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	var claims []*quoratev1.HeldClaim
	for _, c := range r.GetClaims() {
		claims = append(claims, &quoratev1.HeldClaim{Tree: c.GetTree(), Node: c.GetNode(), Amounts: c.GetAmounts()})
	}
	known, waits := q.find(r.GetId()), r.GetMode() == quoratev1.Mode_MODE_WAIT
	switch {
	case known != nil && (amountOf(known.GetClaims()) != amountOf(claims) || known.GetForced() == waits):
		return nil, problem(connect.CodeAlreadyExists, reasonIDTaken)
	case known != nil && rank(known) == endedRank:
		return nil, problem(connect.CodeFailedPrecondition, reasonEnded)
	case known == nil:
		fits := q.held()+amountOf(claims) <= q.limit && len(q.waiting()) == 0
		if amountOf(claims) > q.limit || !waits && !fits {
			return nil, denial("it does not fit")
		}
		known = &quoratev1.Allocation{
			Id: r.GetId(), Claims: claims, Labels: r.GetLabels(), TtlMs: r.GetTtlMs(),
			State: quoratev1.AllocationState_ALLOCATION_STATE_WAITING, Forced: !waits, // stands for the mode
		}
		q.records = append(q.records, known)
		q.set(known, known.GetState(), nil)
		q.drain()
	}
	known = q.find(r.GetId())
	return &quoratev1.AllocateResponse{
		Allocation: known,
		Write:      &quoratev1.WriteInfo{Index: q.index},
		Decision:   &quoratev1.Decision{Explanation: "the limit is in the way"},
	}, nil
}

func (q *fakeQuorate) Renew(_ context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error) {
	carryOut, crash := q.spend()
	if !carryOut {
		return nil, crash
	}
	known := q.find(r.GetId())
	if known == nil {
		return nil, problem(connect.CodeNotFound, reasonNotFound)
	}
	return &quoratev1.RenewResponse{Allocation: known, Write: &quoratev1.WriteInfo{Index: q.index}}, crash
}

func (q *fakeQuorate) Release(_ context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	carryOut, crash := q.spend()
	if !carryOut {
		return nil, crash
	}
	known := q.find(r.GetId())
	if known == nil {
		return nil, cmp.Or(crash, problem(connect.CodeNotFound, reasonNotFound))
	}
	if rank(known) != endedRank {
		known = q.end(known, quoratev1.AllocationState_ALLOCATION_STATE_RELEASED)
	}
	return &quoratev1.ReleaseResponse{Allocation: known, Write: &quoratev1.WriteInfo{Index: q.index}}, crash
}

func (q *fakeQuorate) GetAllocation(
	_ context.Context, r *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	if _, crash := q.spend(); crash != nil {
		return nil, crash
	}
	known := q.find(r.GetId())
	if known == nil {
		return nil, problem(connect.CodeNotFound, reasonNotFound)
	}
	return &quoratev1.GetAllocationResponse{Allocation: known, Read: &quoratev1.ReadInfo{Index: q.index}}, nil
}

func (q *fakeQuorate) ListWaiting(
	context.Context, *quoratev1.ListWaitingRequest,
) (*quoratev1.ListWaitingResponse, error) {
	if _, crash := q.spend(); crash != nil {
		return nil, crash
	}
	answer := &quoratev1.ListWaitingResponse{Read: &quoratev1.ReadInfo{Index: q.index}}
	for _, a := range q.waiting() {
		answer.Requests = append(answer.Requests, &quoratev1.WaitingRequest{Allocation: a})
	}
	return answer, nil
}

func (q *fakeQuorate) ListAllocations(
	_ context.Context, r *quoratev1.ListAllocationsRequest,
) (*quoratev1.ListAllocationsResponse, error) {
	if _, crash := q.spend(); crash != nil {
		return nil, crash
	}
	answer := &quoratev1.ListAllocationsResponse{Read: &quoratev1.ReadInfo{Index: q.index}}
	for _, a := range q.records {
		if (rank(a) == 1 || rank(a) == 2) && strings.HasPrefix(a.GetId(), r.GetIdPrefix()) {
			answer.Allocations = append(answer.Allocations, a)
		}
	}
	return answer, nil
}

func (q *fakeQuorate) Watch(
	ctx context.Context, _ *quoratev1.WatchEventsRequest, _ func(*quoratev1.WatchEventsResponse) error,
) error {
	<-ctx.Done()
	return ctx.Err()
}
