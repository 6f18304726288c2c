package rpc

import (
	"context"
	"errors"
	"fmt"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/quota"
)

type treeService struct {
	quoratev1connect.UnimplementedTreeServiceHandler
	core
}

// configure carries out a change of configuration, or only tries it.
func (s treeService) configure(ctx context.Context, command quota.Command, dry bool, moved moves) (*quoratev1.ConfigurationResult, error) {
	decide := s.proposeAll
	if dry {
		decide = s.try
	}
	outcomes, index, err := decide(ctx, command)
	if err != nil {
		return nil, err
	}
	outcome := outcomes[0]
	switch {
	case outcome.Refused != nil:
		return nil, refusal(moved.back(outcome.Refused))
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
	result, err := s.configure(ctx, command, r.GetDryRun(), moved)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ApplyTreesResponse{Result: result}, nil
}

// toApplyTrees also tells where the lists of the request were put in order.
func toApplyTrees(r *quoratev1.ApplyTreesRequest) (quota.ApplyTrees, moves, error) {
	moved := moves{}
	meta, err := toMeta(r, r.ExpectedRevision) //nolint:protogetter // absent is not zero
	if err != nil {
		return quota.ApplyTrees{}, nil, err
	}
	command := quota.ApplyTrees{Meta: meta, Trees: make([]quota.TreeSpec, len(r.GetTrees()))}
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
	result, err := s.configure(ctx, quota.SetLimits{Meta: meta, Tree: r.GetTree(), Node: r.GetNode(), Limits: limits}, r.GetDryRun(), nil)
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
	result, err := s.configure(ctx, quota.DeleteTree{Meta: meta, Tree: r.GetName()}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &quoratev1.DeleteTreeResponse{Result: result}, nil
}

// GetTree shows one tree.
func (s treeService) GetTree(ctx context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	answer := &quoratev1.GetTreeResponse{}
	read, err := s.read(ctx, r.GetRead(), func(v quota.View) error {
		spec, unknown := v.Tree(r.GetName())
		answer.Tree, answer.Revision = fromTreeSpec(spec), v.Revision()
		return refused(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// ListTrees lists all trees.
func (s treeService) ListTrees(ctx context.Context, r *quoratev1.ListTreesRequest) (*quoratev1.ListTreesResponse, error) {
	answer := &quoratev1.ListTreesResponse{}
	read, err := s.read(ctx, r.GetRead(), func(v quota.View) error {
		for _, t := range v.Trees() {
			answer.Trees = append(answer.Trees, fromTreeSummary(t))
		}
		answer.Revision = v.Revision()
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// GetUsage shows a node or a subtree.
func (s treeService) GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	after, err := openUsageToken(r.GetPageToken())
	if err != nil {
		return nil, toError(err)
	}
	var page quota.UsagePage
	read, err := s.read(ctx, r.GetRead(), func(v quota.View) error {
		var unknown *quota.Error
		page, unknown = v.Usage(r.GetTree(), r.GetNode(), r.GetSubtree(), r.GetPageToken() != "", after, pageSize(r.GetPageSize(), defaultUsagePage))
		return refused(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.GetUsageResponse{NextPageToken: usagePageToken(page), Read: read}
	for _, n := range page.Nodes {
		answer.Nodes = append(answer.Nodes, fromNodeUsage(n))
	}
	return answer, nil
}

// ListRevisions shows the history.
func (s treeService) ListRevisions(ctx context.Context, r *quoratev1.ListRevisionsRequest) (*quoratev1.ListRevisionsResponse, error) {
	answer := &quoratev1.ListRevisionsResponse{}
	read, err := s.read(ctx, r.GetRead(), func(v quota.View) error {
		for _, revision := range v.Revisions(r.GetBefore(), pageSize(r.GetPageSize(), defaultRevisionPage)) {
			answer.Revisions = append(answer.Revisions, fromRevision(revision))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}
