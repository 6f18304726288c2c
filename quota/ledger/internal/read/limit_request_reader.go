package read

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/permit"
)

// LimitRequests returns up to max requests for limits that pass the filter, in the order of their numbers, after a
// number (0: from the oldest): those of the caller, those that it may decide, and for auditors all.
func (r Reader) LimitRequests(f quota.LimitRequestFilter, after uint64, max int) quota.LimitRequestPage {
	var page quota.LimitRequestPage
	for _, request := range r.state.Requests.All {
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
		permit.MayDecide(r.id, &r.state.Forest, request)
}

func (r Reader) requestInfo(request *quota.LimitRequest) quota.LimitRequestInfo {
	return permit.InfoOfRequest(&r.state.Forest, r.id, r.WallNow(), request)
}
