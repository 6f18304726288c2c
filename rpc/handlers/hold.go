package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// HoldNode puts a node on hold, or drains it.
func (s TreeService) HoldNode(ctx context.Context, r *quoratev1.HoldNodeRequest) (*quoratev1.HoldNodeResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	command := quota.HoldNode{
		Meta: meta, Tree: r.GetTree(), Node: r.GetNode(), Deny: r.GetDeny(), For: quota.Span(r.GetForMs()),
		Drain: r.GetDrain(), Grace: quota.Span(r.GetGraceMs()),
	}
	result, write, err := s.decideChange(ctx, command, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.HoldNodeResponse{Result: result, Write: write}, nil
}

// ResumeNode ends the hold of a node.
func (s TreeService) ResumeNode(
	ctx context.Context, r *quoratev1.ResumeNodeRequest,
) (*quoratev1.ResumeNodeResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	command := quota.ResumeNode{Meta: meta, Tree: r.GetTree(), Node: r.GetNode()}
	result, write, err := s.decideChange(ctx, command, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ResumeNodeResponse{Result: result, Write: write}, nil
}

// ListHolds lists the nodes on hold.
func (s TreeService) ListHolds(
	ctx context.Context, r *quoratev1.ListHoldsRequest,
) (*quoratev1.ListHoldsResponse, error) {
	answer := &quoratev1.ListHoldsResponse{}
	var holds []quota.NodeHoldInfo
	size := func(ledger.Reader) int { return quota.MaxHolds }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		holds, answer.Filtered = v.Holds(r.GetTree(), r.GetNode()), v.FiltersUsage(r.GetTree(), r.GetNode())
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range holds {
		answer.Holds = append(answer.Holds, wire.FromNodeHold(&holds[i]))
	}
	answer.Read = read
	return answer, nil
}
