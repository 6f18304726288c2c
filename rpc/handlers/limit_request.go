package handlers

import (
	"context"
	"errors"

	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// LimitRequestService asks for limits, and decides about such requests.
type LimitRequestService struct{ Service }

func (s LimitRequestService) decide(
	ctx context.Context, command quota.Command, dry bool,
) (ledger.Outcome, *quoratev1beta1.LimitRequest, uint64, error) {
	propose := s.proposeOne
	if dry {
		propose = s.tryCommand
	}
	out, index, err := propose(ctx, command)
	if err != nil {
		return ledger.Outcome{}, nil, 0, err
	}
	switch {
	case out.Refused != nil:
		return out, nil, 0, wire.RefusalError(out.Refused)
	case out.LimitRequest == nil:
		return out, nil, 0, wire.ToError(errors.New("the ledger answered no request; this is a bug of the server"))
	}
	return out, wire.FromLimitRequest(out.LimitRequest), index, nil
}

// RequestLimits asks for other limits of a node.
func (s LimitRequestService) RequestLimits(
	ctx context.Context, r *quoratev1beta1.RequestLimitsRequest,
) (*quoratev1beta1.RequestLimitsResponse, error) {
	command, err := wire.ToRequestLimits(r)
	if err != nil {
		return nil, wire.ToError(err)
	}
	out, request, index, err := s.decide(ctx, command, false)
	if err != nil {
		return nil, err
	}
	return &quoratev1beta1.RequestLimitsResponse{
		Request: request, Write: fromWrite(out, index), NotByRule: out.LimitRequest.NotByRule,
	}, nil
}

// ListRequests pages through the requests that the caller may see.
func (s LimitRequestService) ListRequests(
	ctx context.Context, r *quoratev1beta1.ListRequestsRequest,
) (*quoratev1beta1.ListRequestsResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	asked, after, err := openNumbered(r, wire.DefaultRequestPage)
	if err != nil {
		return nil, err
	}
	answer := &quoratev1beta1.ListRequestsResponse{}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		page := v.LimitRequests(wire.ToLimitRequestFilter(r), after, asked.Max)
		answer.NextPageToken = asked.TokenAfterNumber(page.Next)
		for i := range page.Requests {
			answer.Requests = append(answer.Requests, wire.FromLimitRequest(&page.Requests[i]))
		}
		return requirePlace(v, asked, len(page.Requests), r)
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// ApproveRequest approves a request as it was shown.
func (s LimitRequestService) ApproveRequest(
	ctx context.Context, r *quoratev1beta1.ApproveRequestRequest,
) (*quoratev1beta1.ApproveRequestResponse, error) {
	command := quota.ApproveRequest{Number: r.GetId(), Digest: r.GetDigest()}
	out, request, index, err := s.decide(ctx, command, r.GetDryRun())
	if err != nil {
		return nil, err
	}
	answer := &quoratev1beta1.ApproveRequestResponse{Request: request, Write: fromWrite(out, index)}
	if out.Configuration != nil {
		answer.Result = wire.FromConfiguration(*out.Configuration)
	}
	return answer, nil
}

// RejectRequest closes a request of another user.
func (s LimitRequestService) RejectRequest(
	ctx context.Context, r *quoratev1beta1.RejectRequestRequest,
) (*quoratev1beta1.RejectRequestResponse, error) {
	out, request, index, err := s.decide(ctx, quota.RejectRequest{Number: r.GetId(), Reason: r.GetReason()}, false)
	if err != nil {
		return nil, err
	}
	return &quoratev1beta1.RejectRequestResponse{Request: request, Write: fromWrite(out, index)}, nil
}

// WithdrawRequest closes a request of the caller.
func (s LimitRequestService) WithdrawRequest(
	ctx context.Context, r *quoratev1beta1.WithdrawRequestRequest,
) (*quoratev1beta1.WithdrawRequestResponse, error) {
	out, request, index, err := s.decide(ctx, quota.WithdrawRequest{Number: r.GetId()}, false)
	if err != nil {
		return nil, err
	}
	return &quoratev1beta1.WithdrawRequestResponse{Request: request, Write: fromWrite(out, index)}, nil
}
