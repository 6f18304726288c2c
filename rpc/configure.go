package rpc

import (
	"context"
	"errors"
	"fmt"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// decideChange carries out a change of configuration, or only tries it.
func (s treeService) decideChange(ctx context.Context, command quota.Command, dry bool, moved fieldPaths) (*quoratev1.ConfigurationResult, error) {
	decide := s.proposeAll
	if dry {
		decide = s.planChanges
	}
	outcomes, index, err := decide(ctx, command)
	if err != nil {
		return nil, err
	}
	outcome := outcomes[0]
	switch {
	case outcome.Refused != nil:
		return nil, refusalError(moved.restoreField(outcome.Refused))
	case outcome.Configuration == nil:
		return nil, toError(errors.New("the ledger answered no configuration; this is a bug of the server"))
	}
	return fromConfiguration(*outcome.Configuration, index, outcome.Repeated), nil
}

// ApplyTrees makes each named tree exactly as written, all or nothing.
func (s treeService) ApplyTrees(ctx context.Context, r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
	command, moved, err := toApplyTrees(r)
	if err != nil {
		return nil, toError(err)
	}
	result, err := s.decideChange(ctx, command, r.GetDryRun(), moved)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ApplyTreesResponse{Result: result}, nil
}

// toApplyTrees also tells where the lists of the request were put in order.
func toApplyTrees(r *quoratev1.ApplyTreesRequest) (quota.ApplyTrees, fieldPaths, error) {
	moved := fieldPaths{}
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return quota.ApplyTrees{}, nil, err
	}
	command := quota.ApplyTrees{Meta: meta, Trees: make([]quota.TreeSpec, len(r.GetTrees())), Prune: r.GetPrune()}
	for i, t := range r.GetTrees() {
		if command.Trees[i], err = toTreeSpec(t, fmt.Sprintf("trees[%d]", i), moved); err != nil {
			return quota.ApplyTrees{}, nil, err
		}
	}
	return command, moved, nil
}

// SetLimits changes limits of one node.
func (s treeService) SetLimits(ctx context.Context, r *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error) {
	limits, err := toLimits(r.GetLimits(), "limits", true)
	if err != nil {
		return nil, toError(err)
	}
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return nil, toError(err)
	}
	result, err := s.decideChange(ctx, quota.SetLimits{Meta: meta, Tree: r.GetTree(), Node: r.GetNode(), Limits: limits}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.SetLimitsResponse{Result: result}, nil
}

// DeleteTree removes a tree.
func (s treeService) DeleteTree(ctx context.Context, r *quoratev1.DeleteTreeRequest) (*quoratev1.DeleteTreeResponse, error) {
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return nil, toError(err)
	}
	result, err := s.decideChange(ctx, quota.DeleteTree{Meta: meta, Tree: r.GetName()}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.DeleteTreeResponse{Result: result}, nil
}

// MoveNode gives a node another path.
func (s treeService) MoveNode(ctx context.Context, r *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error) {
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return nil, toError(err)
	}
	command := quota.MoveNode{Meta: meta, Tree: r.GetTree(), From: r.GetFrom(), To: r.GetTo()}
	result, err := s.decideChange(ctx, command, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.MoveNodeResponse{Result: result}, nil
}

// SetMaintenance turns a tree's maintenance on or off.
func (s treeService) SetMaintenance(ctx context.Context, r *quoratev1.SetMaintenanceRequest) (*quoratev1.SetMaintenanceResponse, error) {
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return nil, toError(err)
	}
	result, err := s.decideChange(ctx, quota.SetMaintenance{Meta: meta, Tree: r.GetTree(), On: r.GetOn()}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.SetMaintenanceResponse{Result: result}, nil
}

// RollBack makes the configuration what it was.
func (s treeService) RollBack(ctx context.Context, r *quoratev1.RollBackRequest) (*quoratev1.RollBackResponse, error) {
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return nil, toError(err)
	}
	result, err := s.decideChange(ctx, quota.RollBack{Meta: meta, Revision: r.GetRevision()}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.RollBackResponse{Result: result}, nil
}
