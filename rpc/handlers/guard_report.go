package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota/ledger"
)

// maxUnownedLooked bounds the allocations that a guard report looks at under the lock.
const maxUnownedLooked = 200_000

// GetGuardReport says what a guarded cluster would refuse.
func (s AccessService) GetGuardReport(
	ctx context.Context, r *quoratev1.GetGuardReportRequest,
) (*quoratev1.GetGuardReportResponse, error) {
	answer := &quoratev1.GetGuardReportResponse{}
	read, err := s.readInTurn(ctx, r.GetRead(), func(v ledger.Reader) error {
		if err := s.Access.RequireClusterIn(ctx, v.Book(), access.AccessRead); err != nil {
			return err
		}
		for _, t := range v.TreesWithAdmins() {
			answer.TreesWithAdmins = append(answer.TreesWithAdmins, &quoratev1.TreeAdmins{Tree: t.Tree, Admins: t.Admins})
		}
		count, more := v.CountUnowned(maxUnownedLooked)
		answer.UnownedAllocations, answer.UnownedIsCut = int64(count), more
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, refused := range s.Access.WouldRefuse() {
		answer.Refusals = append(answer.Refusals, &quoratev1.WouldRefuse{Verb: refused.Verb, Calls: refused.Calls})
	}
	answer.Read = read
	return answer, nil
}
