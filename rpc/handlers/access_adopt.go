package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// maxUnownedLooked bounds the allocations that a guard report looks at under the lock.
const maxUnownedLooked = 200_000

// AdoptAllocations gives a page of allocations without an owner to a user. The ledger looks again whether they have
// one, so what happens between reading the page and adopting it does no harm.
func (s AccessService) AdoptAllocations(
	ctx context.Context, r *quoratev1.AdoptAllocationsRequest,
) (*quoratev1.AdoptAllocationsResponse, error) {
	at, err := wire.OpenUnownedToken(r.GetPageToken())
	if err != nil {
		return nil, wire.ToError(err)
	}
	most := min(wire.PageSize(r.GetPageSize(), quota.MaxAdopted), quota.MaxAdopted)
	answer := &quoratev1.AdoptAllocationsResponse{}
	var ids []string
	read, err := s.readState(ctx, nil, func(v ledger.Reader) error {
		filter := ledger.Unowned{Namespace: r.GetNamespace(), Prefix: r.GetIdPrefix(), Tree: r.GetTree()}
		ids, at, err = unownedPage(v, filter, at, most)
		return err
	})
	if err != nil {
		return nil, err
	}
	answer.Allocations = wire.FromIDs(ids)
	answer.NextPageToken, answer.Index = wire.UnownedToken(at), read.GetIndex()
	command := quota.AdoptAllocations{Owner: r.GetOwner(), IDs: ids, Reason: r.GetReason()}
	if len(ids) == 0 {
		return answer, s.checkOwner(r.GetOwner())
	}
	propose := s.proposeOne
	if r.GetDryRun() {
		propose = s.tryCommand
	}
	out, index, err := propose(ctx, command)
	if err != nil {
		return nil, err
	}
	if refused := out.Refused; refused != nil {
		return nil, wire.AccessRefusalError(refused)
	}
	answer.Adopted, answer.Left, answer.Index = int32(out.Adopted), wire.FromIDs(out.Left), index
	return answer, nil
}

// checkOwner refuses an owner that the ledger would refuse, if a page has nothing to adopt.
func (s AccessService) checkOwner(owner string) error {
	if err := s.Node.Book().CheckOwner(owner); err != nil {
		return wire.AccessError(err)
	}
	return nil
}

// unownedPage lists held allocations first and then waiting requests. at is nil behind the last page.
func unownedPage(v ledger.Reader, f ledger.Unowned, at *wire.UnownedAt, most int) ([]string, *wire.UnownedAt, error) {
	if at.Waiting {
		ids, next, refused := v.UnownedWaiting(f, at.Turn, most)
		if refused != nil || next == nil {
			return ids, nil, refusalOrNil(refused)
		}
		return ids, &wire.UnownedAt{Waiting: true, Turn: next}, nil
	}
	page, refused := v.UnownedHeld(f, at.Fence, most)
	if refused != nil {
		return nil, nil, refused
	}
	return page.IDs, &wire.UnownedAt{Fence: page.Next, Waiting: page.Next == 0}, nil
}

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
		answer.WouldRefuse = append(answer.WouldRefuse, &quoratev1.WouldRefuse{Verb: refused.Verb, Calls: refused.Calls})
	}
	answer.Read = read
	return answer, nil
}
