package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// LimitRequests returns up to max requests for limits that pass the filter, in the order of their numbers, after a
// number (0: from the oldest): those of the caller, those that it may decide, and for auditors all.
func (r Reader) LimitRequests(f quota.LimitRequestFilter, after uint64, max int) quota.LimitRequestPage {
	var page quota.LimitRequestPage
	for _, request := range r.ledger.requests.all {
		if request.Number <= after || !f.Matches(request) || !r.seesRequest(request) {
			continue
		}
		if len(page.Requests) == max {
			page.Next = page.Requests[max-1].Number
			return page
		}
		page.Requests = append(page.Requests, r.requestInfo(request))
	}
	return page
}

func (r Reader) seesRequest(request *quota.LimitRequest) bool {
	return r.id == nil || r.id.Is(request.Asker) || r.May(access.AuditRead, "", "") ||
		mayDecide(r.id, &r.ledger.forest, request)
}

// requestInfo is a request as the caller sees it. Why the limits do not fit may tell of other nodes, so those who may
// not read the configuration of the parent learn only that they do not.
func (r Reader) requestInfo(request *quota.LimitRequest) quota.LimitRequestInfo {
	l := r.ledger
	info := quota.LimitRequestInfo{LimitRequest: *request}
	info.MayDecide = (r.id == nil || !r.id.Is(request.Asker)) && mayDecide(r.id, &l.forest, request)
	if request.State == quota.RequestStale && !r.May(access.ConfigRead, request.Tree, quota.ParentPath(request.Node)) {
		info.ClosedReason = "the limits cannot be set any more; ask an administrator of the parent"
	}
	if request.State != quota.RequestOpen {
		return info
	}
	n, present, _ := l.forest.requestTarget(request)
	if n == nil {
		return info
	}
	info.Present, info.Digest = present, requestDigest(request, present)
	info.Needed = n.tree.settings.ApprovalsNeeded()
	info.Approvals = slices.DeleteFunc(slices.Clone(request.Approvals),
		func(a quota.Approval) bool { return a.Digest != info.Digest })
	return info
}
