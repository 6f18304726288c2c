package handlers

import (
	"context"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/wire"
)

// AllocationService grants, renews and ends allocations.
type AllocationService struct {
	Service

	Notifier *notify.Notifier
	Limiters *admission.Limiters
	// Streams makes the calls of AllocateStream.
	Streams *StreamCalls
	// FollowCredential returns a context that also ends when the credential of a call does, and what must be called when
	// that is not asked any more.
	FollowCredential func(context.Context) (context.Context, func())
}

// Allocate decides one request and holds all of it, or nothing.
func (s AllocationService) Allocate(
	ctx context.Context, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	if r.GetPollMs() > 0 { // before anything is done
		leave, err := s.Limiters.WaitInside(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	outcome, index, err := s.proposeOne(ctx, wire.ToAllocate(r, namespaceOf(ctx)))
	if err != nil {
		return nil, err
	}
	if outcome.Decision != nil && outcome.Decision.Waiting && r.GetPollMs() > 0 {
		return s.awaitGrant(ctx, r, outcome, index)
	}
	if r.GetNameHolders() && outcome.Decision != nil && !outcome.Decision.Granted && !outcome.Decision.Waiting {
		outcome.Decision = s.withHolders(ctx, wire.ToID(r, namespaceOf(ctx)), *outcome.Decision, index)
	}
	return s.fromAllocateOutcome(ctx, outcome, index)
}

// withHolders adds to a denial who is in the way. If that cannot be read, the plain denial is the answer.
func (s AllocationService) withHolders(ctx context.Context, id string, d quota.Decision, index uint64) *quota.Decision {
	options := &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: index}
	size := func(v ledger.Reader) int { return v.Counts().Held }
	_, err := s.readBySize(ctx, options, size, func(v ledger.Reader) error {
		d.Holders = ledger.DenialHolders(v, id)
		return nil
	})
	if err != nil {
		d.Holders = nil
	}
	return &d
}

func (s AllocationService) fromAllocateOutcome(
	ctx context.Context, o ledger.Outcome, index uint64,
) (*quoratev1.AllocateResponse, error) {
	var b answerBuilder
	return b.allocated(ctx, s, o, index)
}

// BatchAllocate decides each request on its own. They share a log entry.
func (s AllocationService) BatchAllocate(
	ctx context.Context, r *quoratev1.BatchAllocateRequest,
) (*quoratev1.BatchAllocateResponse, error) {
	answer := &quoratev1.BatchAllocateResponse{Outcomes: make([]*quoratev1.AllocateOutcome, len(r.GetRequests()))}
	var valid batchPart
	for i, request := range r.GetRequests() {
		if err := s.Validator.Validate(request); err != nil {
			answer.Outcomes[i] = failedOutcome(wire.InvalidRequestError(err))
			continue
		}
		valid.add(i, wire.ToAllocate(request, namespaceOf(ctx)))
	}
	if err := s.decidePart(ctx, valid, answer.GetOutcomes()); err != nil {
		return nil, err
	}
	return answer, nil
}

// batchPart is decided together; it has the positions of its requests in the batch.
type batchPart struct {
	commands []quota.Command
	places   []int
}

func (p *batchPart) add(place int, command quota.Command) {
	p.commands, p.places = append(p.commands, command), append(p.places, place)
}

func (s AllocationService) decidePart(
	ctx context.Context, p batchPart, outcomes []*quoratev1.AllocateOutcome,
) error {
	if len(p.commands) == 0 {
		return nil
	}
	decided, index, err := s.proposeAll(ctx, p.commands...)
	if err != nil {
		return err
	}
	var answers answerBuilder
	for i, place := range p.places {
		if isDenied(decided[i]) {
			outcomes[place] = failure(wire.DenialFailure(decided[i].Decision, index))
			continue
		}
		granted, err := answers.allocated(ctx, s, decided[i], index)
		outcomes[place] = &quoratev1.AllocateOutcome{Outcome: &quoratev1.AllocateOutcome_Granted{Granted: granted}}
		if err != nil {
			outcomes[place] = failedOutcome(wire.ToError(err))
		}
	}
	return nil
}

func failedOutcome(err *connect.Error) *quoratev1.AllocateOutcome {
	return failure(wire.ToFailure(err))
}

func failure(f *quoratev1.Failure) *quoratev1.AllocateOutcome {
	return &quoratev1.AllocateOutcome{Outcome: &quoratev1.AllocateOutcome_Failure{Failure: f}}
}

// Release ends an allocation.
func (s AllocationService) Release(
	ctx context.Context, r *quoratev1.ReleaseRequest,
) (*quoratev1.ReleaseResponse, error) {
	outcome, index, err := s.proposeOne(ctx, wire.ToRelease(r, namespaceOf(ctx)))
	if err != nil {
		return nil, err
	}
	var b answerBuilder
	return b.released(outcome, index)
}

// BatchRelease carries out releases, each on its own.
func (s AllocationService) BatchRelease(
	ctx context.Context, r *quoratev1.BatchReleaseRequest,
) (*quoratev1.BatchReleaseResponse, error) {
	answer := &quoratev1.BatchReleaseResponse{Outcomes: make([]*quoratev1.ReleaseOutcome, len(r.GetRequests()))}
	var valid batchPart
	for i, release := range r.GetRequests() {
		if err := s.Validator.Validate(release); err != nil {
			answer.Outcomes[i] = releaseOutcome(nil, wire.InvalidRequestError(err))
			continue
		}
		valid.add(i, wire.ToRelease(release, namespaceOf(ctx)))
	}
	if len(valid.commands) == 0 {
		return answer, nil
	}
	decided, index, err := s.proposeAll(ctx, valid.commands...)
	if err != nil {
		return nil, err
	}
	var answers answerBuilder
	for i, place := range valid.places {
		answer.Outcomes[place] = releaseOutcome(answers.released(decided[i], index))
	}
	return answer, nil
}

func releaseOutcome(released *quoratev1.ReleaseResponse, err error) *quoratev1.ReleaseOutcome {
	if err != nil {
		return &quoratev1.ReleaseOutcome{
			Outcome: &quoratev1.ReleaseOutcome_Failure{Failure: wire.ToFailure(wire.ToError(err))},
		}
	}
	return &quoratev1.ReleaseOutcome{Outcome: &quoratev1.ReleaseOutcome_Released{Released: released}}
}

// GetAllocation shows one allocation.
func (s AllocationService) GetAllocation(
	ctx context.Context, r *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	var found quota.AllocationInfo
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		var unknown *quota.Error
		found, unknown = v.Allocation(wire.ToID(r, namespaceOf(ctx)))
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	if len(found.Data) > 0 {
		noteDataRead(ctx, found.Owner)
	}
	return &quoratev1.GetAllocationResponse{Allocation: wire.FromAllocation(found), Read: read}, nil
}

// openNumbered reads the page that a request of a list in the order of numbers asks for, and the number after which it
// continues.
func openNumbered(r wire.PagedRequest, defaultSize int) (wire.Page, uint64, error) {
	page, err := wire.OpenPage(r, defaultSize)
	if err != nil {
		return wire.Page{}, 0, wire.ToError(err)
	}
	after, err := page.Number()
	if err != nil {
		return wire.Page{}, 0, wire.ToError(err)
	}
	return page, after, nil
}

// allocationCost is what an allocation in an answer costs beside one that is only looked at, for readBySize.
const allocationCost = 10

// ListAllocations pages through held allocations.
func (s AllocationService) ListAllocations(
	ctx context.Context, r *quoratev1.ListAllocationsRequest,
) (*quoratev1.ListAllocationsResponse, error) {
	asked, after, err := openNumbered(r, wire.DefaultAllocationPage)
	if err != nil {
		return nil, err
	}
	filter := quota.AllocationFilter{
		Tree: r.GetTree(), Node: r.GetNode(), Labels: wire.ToLabels(r.GetLabels()),
		Leases: r.GetLeases(), User: r.GetUser(), Application: r.GetApplication(), Owner: r.GetOwner(),
		Namespace: r.GetNamespace(), IDPrefix: r.GetIdPrefix(), State: wire.ToListedState(r.GetState()),
	}
	var page quota.AllocationPage
	filtered := false
	size := func(v ledger.Reader) int {
		if filter.SelectsAll() {
			return asked.Max * allocationCost
		}
		return v.Counts().Held
	}
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		var unknown *quota.Error
		page, unknown = v.Allocations(filter, after, asked.Max)
		filtered = v.FiltersHolders()
		if unknown != nil {
			return unknown
		}
		return requirePlace(v, asked, len(page.Allocations), r)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListAllocationsResponse{
		NextPageToken: asked.TokenAfterNumber(page.Next), Read: read, Filtered: filtered,
	}
	for _, a := range page.Allocations {
		answer.Allocations = append(answer.Allocations, wire.FromAllocation(a))
	}
	return answer, nil
}
