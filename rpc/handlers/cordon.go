package handlers

import (
	"context"
	"slices"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// CordonService puts nodes on hold.
type CordonService struct {
	Service
}

// CordonNode puts a node on hold, or drains it.
func (s CordonService) CordonNode(
	ctx context.Context, r *adminv1.CordonNodeRequest,
) (*adminv1.CordonNodeResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	command := quota.CordonNode{
		Meta: meta, Tree: r.GetTree(), Node: r.GetNode(), Deny: r.GetDeny(), For: quota.Span(r.GetForMs()),
		Drain: r.GetDrain(), Grace: quota.Span(r.GetGraceMs()),
	}
	result, write, err := s.decideChange(ctx, command, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &adminv1.CordonNodeResponse{Result: result, Write: write}, nil
}

// UncordonNode ends the hold of a node.
func (s CordonService) UncordonNode(
	ctx context.Context, r *adminv1.UncordonNodeRequest,
) (*adminv1.UncordonNodeResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	command := quota.UncordonNode{Meta: meta, Tree: r.GetTree(), Node: r.GetNode()}
	result, write, err := s.decideChange(ctx, command, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &adminv1.UncordonNodeResponse{Result: result, Write: write}, nil
}

// ListCordons lists the nodes on hold.
func (s CordonService) ListCordons(
	ctx context.Context, r *adminv1.ListCordonsRequest,
) (*adminv1.ListCordonsResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &adminv1.ListCordonsResponse{}
	var holds []quota.NodeCordonInfo
	size := func(ledger.Reader) int { return quota.MaxHolds }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		holds, answer.Filtered = v.Holds(r.GetTree(), r.GetNode()), v.FiltersUsage(r.GetTree(), r.GetNode())
		return requirePlace(v, page, len(holds), r)
	})
	if err != nil {
		return nil, err
	}
	holds, answer.NextPageToken = wire.CutPage(page, slices.Values(holds), func(h quota.NodeCordonInfo) string {
		return h.Tree + "\x00" + wire.PathKey(h.Node)
	})
	for i := range holds {
		answer.Cordons = append(answer.Cordons, wire.FromNodeCordon(&holds[i]))
	}
	answer.Read = read
	return answer, nil
}
