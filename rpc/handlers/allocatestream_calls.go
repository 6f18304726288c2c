package handlers

import (
	"context"
	"errors"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/wire"
)

func (s *StreamCalls) call(
	ctx context.Context, kind streamKind, calls []*streamCall,
) ([]*quoratev1.AllocateStreamResponse, error) {
	switch kind {
	case streamAllocate:
		return s.allocate(ctx, calls)
	case streamRelease:
		return s.release(ctx, calls)
	case streamRenew:
		return s.renew(ctx, calls)
	case streamKinds:
	}
	return nil, errors.New("no such kind of requests; this is a bug of the server")
}

func (s *StreamCalls) allocate(
	ctx context.Context, calls []*streamCall,
) ([]*quoratev1.AllocateStreamResponse, error) {
	batch := &quoratev1.BatchAllocateRequest{}
	for _, c := range calls {
		batch.Requests = append(batch.Requests, c.request.GetAllocate())
	}
	answer, err := s.Client.BatchAllocate(ctx, batch)
	if err != nil {
		return nil, err
	}
	var answers []*quoratev1.AllocateStreamResponse
	for _, o := range answer.GetOutcomes() {
		one := failedAnswer(o.GetFailure())
		if o.GetGranted() != nil {
			one.Outcome = &quoratev1.AllocateStreamResponse_Granted{Granted: o.GetGranted()}
		}
		answers = append(answers, one)
	}
	return answers, nil
}

func (s *StreamCalls) release(
	ctx context.Context, calls []*streamCall,
) ([]*quoratev1.AllocateStreamResponse, error) {
	batch := &quoratev1.BatchReleaseRequest{}
	for _, c := range calls {
		batch.Requests = append(batch.Requests, c.request.GetRelease())
	}
	answer, err := s.Client.BatchRelease(ctx, batch)
	if err != nil {
		return nil, err
	}
	var answers []*quoratev1.AllocateStreamResponse
	for _, o := range answer.GetOutcomes() {
		one := failedAnswer(o.GetFailure())
		if o.GetReleased() != nil {
			one.Outcome = &quoratev1.AllocateStreamResponse_Released{Released: o.GetReleased()}
		}
		answers = append(answers, one)
	}
	return answers, nil
}

func (s *StreamCalls) renew(
	ctx context.Context, calls []*streamCall,
) ([]*quoratev1.AllocateStreamResponse, error) {
	batch := &quoratev1.BatchRenewRequest{}
	for _, c := range calls {
		batch.Renewals = append(batch.Renewals, c.request.GetRenew())
	}
	answer, err := s.Client.BatchRenew(ctx, batch)
	if err != nil {
		return nil, err
	}
	var answers []*quoratev1.AllocateStreamResponse
	for _, o := range answer.GetOutcomes() {
		one := failedAnswer(o.GetFailure())
		if o.GetRenewed() != nil {
			one.Outcome = &quoratev1.AllocateStreamResponse_Renewed{Renewed: o.GetRenewed()}
		}
		answers = append(answers, one)
	}
	return answers, nil
}

func failedAnswer(failure *quoratev1.Failure) *quoratev1.AllocateStreamResponse {
	return &quoratev1.AllocateStreamResponse{Outcome: &quoratev1.AllocateStreamResponse_Failure{Failure: failure}}
}

func batchFailure(err error) error {
	if err == nil {
		err = errors.New("the batch has fewer outcomes than requests; this is a bug of the server")
	}
	return wire.ToError(err)
}
