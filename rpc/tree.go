package rpc

import (
	"context"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

type treeService struct {
	core
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

// GetConfiguration shows all trees at one point of the log.
func (s treeService) GetConfiguration(ctx context.Context, r *quoratev1.GetConfigurationRequest) (*quoratev1.GetConfigurationResponse, error) {
	answer := &quoratev1.GetConfigurationResponse{}
	read, err := s.read(ctx, r.GetRead(), func(v quota.View) error {
		answer.Revision = v.Revision()
		for _, t := range v.Trees() {
			spec, unknown := v.Tree(t.Name)
			if unknown != nil {
				return unknown
			}
			answer.Trees = append(answer.Trees, fromTreeSpec(spec))
		}
		return nil
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
