package handlers

import (
	"context"
	"errors"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/wire"
)

// decideChange carries out a change of configuration, or plans it in a dry run.
func (s Service) decideChange(
	ctx context.Context, command quota.Command, dry bool, moved wire.FieldPaths,
) (*quoratev1.ConfigurationResult, *quoratev1.WriteInfo, error) {
	decide := s.proposeOne
	if dry {
		decide = s.tryCommand
	}
	outcome, index, err := decide(ctx, command)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case outcome.Refused != nil:
		return nil, nil, wire.RefusalError(moved.RestoreField(outcome.Refused))
	case outcome.Configuration == nil:
		return nil, nil, wire.ToError(errors.New("the ledger answered no configuration; this is a bug of the server"))
	}
	return wire.FromConfiguration(*outcome.Configuration), fromWrite(outcome, index), nil
}

// ApplyTrees makes each named tree exactly as written, all or nothing.
func (s TreeService) ApplyTrees(
	ctx context.Context, r *quoratev1.ApplyTreesRequest,
) (*quoratev1.ApplyTreesResponse, error) {
	command, moved, err := wire.ToApplyTrees(r)
	if err != nil {
		return nil, wire.ToError(err)
	}
	if command.Access != nil { // the ledger checks less, because it verifies no credential
		if err := identify.CheckSection(*command.Access); err != nil {
			return nil, wire.ToError(wire.InvalidField("access", "%v", err))
		}
	}
	result, write, err := s.decideChange(ctx, command, r.GetDryRun(), moved)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ApplyTreesResponse{Result: result, Write: write}, nil
}

// SetLimits changes limits of one node.
func (s TreeService) SetLimits(
	ctx context.Context, r *quoratev1.SetLimitsRequest,
) (*quoratev1.SetLimitsResponse, error) {
	limits, err := wire.ToLimits(r.GetLimits(), "limits", true)
	if err != nil {
		return nil, wire.ToError(err)
	}
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	result, write, err := s.decideChange(
		ctx, quota.SetLimits{Meta: meta, Tree: r.GetTree(), Node: r.GetNode(), Limits: limits}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.SetLimitsResponse{Result: result, Write: write}, nil
}

// DeleteTree removes a tree.
func (s TreeService) DeleteTree(
	ctx context.Context, r *quoratev1.DeleteTreeRequest,
) (*quoratev1.DeleteTreeResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	result, write, err := s.decideChange(ctx, quota.DeleteTree{Meta: meta, Tree: r.GetName()}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.DeleteTreeResponse{Result: result, Write: write}, nil
}

// MoveNode gives a node another path.
func (s TreeService) MoveNode(ctx context.Context, r *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	command := quota.MoveNode{Meta: meta, Tree: r.GetTree(), From: r.GetNode(), To: r.GetNewNode()}
	result, write, err := s.decideChange(ctx, command, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.MoveNodeResponse{Result: result, Write: write}, nil
}
