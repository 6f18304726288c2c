package boskos

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// mostLooks bounds how often a call reads again because the item changed before the call could act.
const mostLooks = 5

// itemsNamed finds the items of a name in all trees. Static names are unique; a name that was made on demand may be
// that of another type's item by chance.
func (s *server) itemsNamed(ctx context.Context, l *layout, name string) ([]*quoratev1.Item, error) {
	if len(name) > maxNameBytes {
		return nil, nil
	}
	var items []*quoratev1.Item
	for _, tree := range l.trees {
		found, err := s.listAllItems(ctx, &quoratev1.ListItemsRequest{Tree: tree, Name: name})
		if err != nil && !isUnknown(err) {
			return nil, err
		}
		items = append(items, found...)
	}
	return items, nil
}

func (s *server) listAllItems(ctx context.Context, request *quoratev1.ListItemsRequest) ([]*quoratev1.Item, error) {
	var items []*quoratev1.Item
	for {
		found, err := s.api.Items.ListItems(ctx, request)
		if err != nil {
			return nil, err
		}
		items = append(items, found.GetItems()...)
		if request.PageToken = found.GetNextPageToken(); request.GetPageToken() == "" {
			return items, nil
		}
	}
}

// itemOf returns different errors for an unknown name and for another owner.
func (s *server) itemOf(ctx context.Context, name, owner string) (*quoratev1.Item, error) {
	var items []*quoratev1.Item
	err := s.layout.withLayout(ctx, func(l *layout) (err error) {
		items, err = s.itemsNamed(ctx, l, name)
		if err == nil && len(items) == 0 {
			return errUnknown
		}
		return err
	})
	switch at := slices.IndexFunc(items, func(i *quoratev1.Item) bool {
		return i.GetAllocation() != nil && i.GetOwner() == owner
	}); {
	case isUnknown(err):
		return nil, notAvailable(name)
	case err != nil:
		return nil, err
	case at < 0:
		return nil, otherOwner(owner, items[0].GetOwner())
	default:
		return items[at], nil
	}
}

// errLost is the error of an item that was lost after it was read.
var errLost = connect.NewError(connect.CodeAborted, errors.New("the resource was lost meanwhile"))

// withItem reads the item again if it changed meanwhile.
func (s *server) withItem(ctx context.Context, name, owner string, do func(*quoratev1.Item) error) error {
	var err error
	for range mostLooks {
		item, unfit := s.itemOf(ctx, name, owner)
		if unfit != nil {
			return unfit
		}
		if err = do(item); !isLost(err) {
			break
		}
	}
	return err
}

// isLost reports whether an allocation no longer had the item.
func isLost(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeFailedPrecondition || code == connect.CodeAborted || code == connect.CodeNotFound
}
