package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// ItemService shows and changes items.
type ItemService struct {
	Service
}

// ListItems pages through items.
func (s ItemService) ListItems(
	ctx context.Context, r *quoratev1.ListItemsRequest,
) (*quoratev1.ListItemsResponse, error) {
	asked, err := wire.OpenPage(r, wire.DefaultItemPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	after, err := asked.ItemPosition(r.GetTree())
	if err != nil {
		return nil, wire.ToError(err)
	}
	filter := quota.ItemFilter{
		Tree: r.GetTree(), Resource: r.GetResource(), State: r.GetState(), Name: r.GetName(),
		Owner: r.GetOwner(),
	}
	size := func(v ledger.Reader) int {
		switch {
		case filter.Name != "":
			return 1 // of each resource
		case filter.State == "" && filter.Owner == "":
			return asked.Max
		}
		return v.Counts().Items
	}
	var page quota.ItemPage
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		var unknown *quota.Error
		page, unknown = v.Items(filter, after, asked.Max, r.GetUserData())
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListItemsResponse{NextPageToken: asked.TokenAfterItem(page.Next), Read: read}
	for _, i := range page.Items {
		if len(i.Data) > 0 {
			noteDataRead(ctx, "")
		}
		answer.Items = append(answer.Items, wire.FromItem(i))
	}
	return answer, nil
}

// CountItems counts items by state and by owner.
func (s ItemService) CountItems(
	ctx context.Context, r *quoratev1.CountItemsRequest,
) (*quoratev1.CountItemsResponse, error) {
	var counts []quota.ItemCount
	size := func(v ledger.Reader) int { return v.Counts().Items }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		var unknown *quota.Error
		counts, unknown = v.ItemCounts(r.GetTree(), r.GetResource())
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.CountItemsResponse{Read: read}
	for _, c := range counts {
		answer.Counts = append(answer.Counts, wire.FromItemCount(c))
	}
	return answer, nil
}

// UpdateItems changes items that are not held.
func (s ItemService) UpdateItems(
	ctx context.Context, r *quoratev1.UpdateItemsRequest,
) (*quoratev1.UpdateItemsResponse, error) {
	outcome, index, err := s.proposeOne(ctx, quota.UpdateItems{Updates: wire.ToItemUpdates(r.GetUpdates())})
	switch {
	case err != nil:
		return nil, err
	case outcome.Refused != nil:
		return nil, wire.RefusalError(outcome.Refused)
	}
	answer := &quoratev1.UpdateItemsResponse{Write: fromWrite(outcome, index)}
	for _, i := range outcome.Items {
		i.Data = nil // user data is only in answers to requests for it
		answer.Items = append(answer.Items, wire.FromItem(i))
	}
	return answer, nil
}

// ResetItems takes items from holders that have not renewed for a while, or lists those that it would take.
func (s ItemService) ResetItems(
	ctx context.Context, r *quoratev1.ResetItemsRequest,
) (*quoratev1.ResetItemsResponse, error) {
	decide := s.proposeOne
	if r.GetDryRun() {
		decide = s.tryCommand
	}
	outcome, index, err := decide(ctx, quota.ResetItems{
		Tree: r.GetTree(), Resource: r.GetResource(), State: r.GetState(),
		Idle: quota.Span(r.GetIdleMs()), To: r.GetNewState(),
	})
	switch {
	case err != nil:
		return nil, err
	case outcome.Refused != nil:
		return nil, wire.RefusalError(outcome.Refused)
	}
	answer := &quoratev1.ResetItemsResponse{Write: fromWrite(outcome, index)}
	for _, i := range outcome.Items {
		answer.Items = append(answer.Items, &quoratev1.ResetItem{
			Name: i.Name, Owner: i.Owner, Allocation: wire.FromID(i.Allocation), UpdatedLedgerMs: int64(i.Updated),
		})
	}
	return answer, nil
}
