package handlers

import (
	"context"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
)

// maxUnownedLooked bounds the allocations that a guard report looks at under the lock.
const maxUnownedLooked = 200_000

// GetGuardReport says what a guarded cluster would refuse.
func (s AccessService) GetGuardReport(
	ctx context.Context, r *adminv1.GetGuardReportRequest,
) (*adminv1.GetGuardReportResponse, error) {
	answer := &adminv1.GetGuardReportResponse{}
	read, err := s.readInTurn(ctx, r.GetRead(), func(v ledger.Reader) error {
		if err := s.Access.RequireClusterIn(ctx, v.Book(), access.AccessRead); err != nil {
			return err
		}
		count, more := v.CountUnowned(maxUnownedLooked)
		answer.UnownedAllocations, answer.UnownedIsCut = int64(count), more
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, refused := range s.Access.WouldRefuse() {
		answer.Refusals = append(answer.Refusals, &adminv1.WouldRefuse{Verb: refused.Verb, Calls: refused.Calls})
	}
	answer.Read = read
	return answer, nil
}
