package wire

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/quota"
)

// DefaultRequestPage is the size of a page of requests for limits.
const DefaultRequestPage = 100

var requestStates = map[quota.RequestState]quoratev1beta1.LimitRequestState{
	quota.RequestOpen:      quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_OPEN,
	quota.RequestApplied:   quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_APPLIED,
	quota.RequestRejected:  quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_REJECTED,
	quota.RequestWithdrawn: quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_WITHDRAWN,
	quota.RequestStale:     quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_STALE,
	quota.RequestExpired:   quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_EXPIRED,
}

// ToRequestLimits converts a request for limits.
func ToRequestLimits(r *quoratev1beta1.RequestLimitsRequest) (quota.RequestLimits, error) {
	limits, err := ToLimits(r.GetLimits(), "limits", true)
	if err != nil {
		return quota.RequestLimits{}, err
	}
	return quota.RequestLimits{
		Tree: r.GetTree(), Node: r.GetNode(), Limits: limits, Reason: r.GetReason(),
		Open: quota.Span(r.GetOpenMs()),
	}, nil
}

// ToLimitRequestFilter converts the filters of a list.
func ToLimitRequestFilter(r *quoratev1beta1.ListRequestsRequest) quota.LimitRequestFilter {
	f := quota.LimitRequestFilter{
		Number: r.GetId(), Tree: r.GetTree(), Node: r.GetNode(), Asker: r.GetAsker(),
	}
	for state, number := range requestStates {
		if number == r.GetState() {
			f.State = state
		}
	}
	return f
}

// FromLimitRequest shows a request for limits.
func FromLimitRequest(r *quota.LimitRequestInfo) *quoratev1beta1.LimitRequest {
	shown := &quoratev1beta1.LimitRequest{
		Id: r.Number, Tree: r.Tree, Node: r.Node, Limits: fromAllLimits(r.Limits), Asker: r.Asker,
		Reason: r.Reason, MadeAt: FromWall(r.Made.Wall), EndsAt: FromWall(r.Made.Wall + int64(r.Ends-r.Made.At)),
		ApprovalsNeeded: int32(r.Needed), State: requestStates[r.State], ClosedBy: r.ClosedBy,
		ClosedReason: r.ClosedReason, Revision: r.Revision, Present: fromAllLimits(r.Present), Digest: r.Digest,
		MayDecide: r.MayDecide,
	}
	for _, a := range r.Approvals {
		shown.Approvals = append(shown.Approvals, &quoratev1beta1.LimitApproval{User: a.User, GivenAt: FromWall(a.Wall)})
	}
	if r.State != quota.RequestOpen {
		shown.ClosedAt = FromWall(r.Closed.Wall)
	}
	return shown
}

// fromAllLimits is fromLimits that shows unset limits too.
func fromAllLimits(limits []quota.ResourceLimit) map[string]*quoratev1.Limit {
	wire := fromLimits(limits)
	for _, l := range limits {
		if l.Limit.Kind == quota.Unset {
			wire[l.Resource] = &quoratev1.Limit{Value: &quoratev1.Limit_Unset{Unset: true}}
		}
	}
	return wire
}
