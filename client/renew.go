package client

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// renewAll renews leases in one call. It returns an outcome for each, or an error.
func (c *Client) renewAll(ctx context.Context, leases []*Lease) ([]*quoratev1.RenewOutcome, error) {
	request := &quoratev1.BatchRenewRequest{}
	for _, l := range leases {
		request.Renewals = append(request.Renewals, &quoratev1.RenewRequest{
			Namespace: l.name.namespace, Id: l.name.id, Fence: l.fence,
		})
	}
	answer, err := c.Allocations.BatchRenew(ctx, request)
	if err != nil {
		return nil, err
	}
	if len(answer.GetOutcomes()) != len(leases) {
		return nil, fmt.Errorf("%d leases were renewed, and %d outcomes came back", len(leases),
			len(answer.GetOutcomes()))
	}
	for i, l := range leases {
		if got := nameOf(answer.GetOutcomes()[i].GetRenewed().GetAllocation()); got.id != "" && got != l.name {
			return nil, fmt.Errorf("the answer is about %q instead of %q: something mixes answers up", got, l.name)
		}
	}
	return answer.GetOutcomes(), nil
}

// applyOutcome applies the outcome of a renewal that was sent at a time. It returns after how long to renew again, 0
// for never.
func (l *Lease) applyOutcome(outcome *quoratev1.RenewOutcome, sent time.Time) time.Duration {
	failure := outcome.GetFailure()
	if failure == nil {
		l.applyRenewal(outcome.GetRenewed().GetAllocation(), sent, outcome.GetRenewed().GetWrite().GetLedgerTimeMs())
		return l.renewIn()
	}
	fault := fmt.Errorf("%s (%s)", failure.GetMessage(), failure.GetCode())
	loss, ended := lossOf(failure)
	if !ended {
		l.noteFailure(fault)
		return max(l.currentTTL()/attemptPart, firstPause)
	}
	lost := &LostError{Namespace: l.name.namespace, ID: l.name.id, How: loss, By: revokerOf(l.Allocation()), cause: fault}
	if loss == Ended && lost.By != "" {
		lost.How = Preempted
	}
	l.endLease(lost)
	return 0
}

// lossOf returns how a lease that could not be renewed was lost; false if another attempt may succeed.
func lossOf(failure *quoratev1.Failure) (How, bool) {
	switch failure.GetCode() {
	case connect.CodeNotFound.String(), connect.CodeFailedPrecondition.String():
		return Ended, true
	case connect.CodeAborted.String():
		return Taken, true
	}
	return "", false
}

// renewIn returns after how long to renew a lease that was just renewed. It is 0 if the lease has no TTL, or is
// revoked, because renewals do not extend a revoked lease.
func (l *Lease) renewIn() time.Duration {
	record := l.Allocation()
	if record.GetRevokedBy() != nil || record.GetExpiresLedgerMs() == 0 {
		return 0
	}
	return spreadTime(ttlOf(record) / renewPart)
}

func (l *Lease) currentTTL() time.Duration { return ttlOf(l.Allocation()) }
