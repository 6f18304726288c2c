package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/notify"
	"github.com/quorate/quorate/rpc/wire"
)

// EventService tells what happens.
type EventService struct {
	Service
	Notifier *notify.Notifier
}

// ListEvents pages through what happened lately.
func (s EventService) ListEvents(
	ctx context.Context, r *quoratev1.ListEventsRequest,
) (*quoratev1.ListEventsResponse, error) {
	if r.GetNode() != "" && r.GetTree() == "" {
		return nil, wire.InvalidField("node", "a node filter needs a tree too")
	}
	asked, position, err := openNumbered(r, wire.DefaultEventPage)
	if err != nil {
		return nil, err
	}
	filter := quota.EventFilter{
		After: r.GetAfterEvent(), NewestFirst: r.GetNewestFirst(), Kind: wire.EventKinds[r.GetKind()], ID: r.GetId(),
		Namespace: eventNamespace(ctx, r), Tree: r.GetTree(), Node: r.GetNode(),
	}
	if filter.NewestFirst {
		filter.Before = position
	} else {
		filter.After = max(filter.After, position)
	}
	var page quota.EventPage
	filtered := false
	size := func(ledger.Reader) int { return asked.Max * eventCost }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		page, filtered = v.Events(filter, asked.Max), v.FiltersHolders()
		return requirePlace(v, asked, len(page.Events), r)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListEventsResponse{
		NextPageToken: asked.TokenAfterNumber(page.Next), Read: read, Filtered: filtered,
	}
	for _, e := range page.Events {
		answer.Events = append(answer.Events, wire.FromEvent(e))
	}
	return answer, nil
}
