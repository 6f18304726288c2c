package rpc

import (
	"context"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

type itemService struct {
	core
}

// ListItems pages through items.
func (s itemService) ListItems(ctx context.Context, r *quoratev1.ListItemsRequest) (*quoratev1.ListItemsResponse, error) {
	after, err := openItemToken(r.GetPageToken(), r.GetTree())
	if err != nil {
		return nil, toError(err)
	}
	filter := quota.ItemFilter{Tree: r.GetTree(), Resource: r.GetResource(), State: r.GetState(), Name: r.GetName(), Owner: r.GetOwner()}
	answer := &quoratev1.ListItemsResponse{}
	answer.Read, err = s.read(ctx, r.GetRead(), func(v quota.View) error {
		page, unknown := v.Items(filter, after, pageSize(r.GetPageSize(), defaultItemPage), r.GetUserData())
		for _, i := range page.Items {
			answer.Items = append(answer.Items, fromItem(i))
		}
		answer.NextPageToken = itemPageToken(page.Next)
		return refused(unknown)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// CountItems counts items by state and by owner.
func (s itemService) CountItems(ctx context.Context, r *quoratev1.CountItemsRequest) (*quoratev1.CountItemsResponse, error) {
	answer := &quoratev1.CountItemsResponse{}
	read, err := s.read(ctx, r.GetRead(), func(v quota.View) error {
		counts, unknown := v.ItemCounts(r.GetTree(), r.GetResource())
		for _, c := range counts {
			answer.Counts = append(answer.Counts, fromItemCount(c))
		}
		return refused(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// UpdateItems changes items that nobody holds.
func (s itemService) UpdateItems(ctx context.Context, r *quoratev1.UpdateItemsRequest) (*quoratev1.UpdateItemsResponse, error) {
	outcome, index, err := s.propose(ctx, quota.UpdateItems{Updates: toItemUpdates(r.GetUpdates())})
	switch {
	case err != nil:
		return nil, err
	case outcome.Refused != nil:
		return nil, refusal(outcome.Refused)
	}
	answer := &quoratev1.UpdateItemsResponse{Index: index}
	for _, i := range outcome.Items {
		i.Data = nil // who does not ask for it does not get it
		answer.Items = append(answer.Items, fromItem(i))
	}
	return answer, nil
}

// ResetItems takes items from holders that have not renewed for a while.
func (s itemService) ResetItems(ctx context.Context, r *quoratev1.ResetItemsRequest) (*quoratev1.ResetItemsResponse, error) {
	outcome, index, err := s.propose(ctx, quota.ResetItems{
		Tree: r.GetTree(), Resource: r.GetResource(), State: r.GetState(), Idle: quota.Span(r.GetIdleMs()), To: r.GetTo(),
	})
	switch {
	case err != nil:
		return nil, err
	case outcome.Refused != nil:
		return nil, refusal(outcome.Refused)
	}
	answer := &quoratev1.ResetItemsResponse{Index: index}
	for _, i := range outcome.Items {
		answer.Items = append(answer.Items, &quoratev1.ResetItem{Name: i.Name, Owner: i.Owner, Allocation: i.Allocation})
	}
	return answer, nil
}
