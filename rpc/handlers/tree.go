package handlers

import (
	"context"
	"slices"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// What one of a list costs beside a record, for readBySize: a tree has some resources, a revision up to 200 changes,
// and the usage of a node becomes a message for each resource.
const (
	treeCost     = 20
	revisionCost = 100
	usageCost    = 8
)

// TreeService shows and changes trees.
type TreeService struct {
	Service
}

// GetTree shows one tree.
func (s TreeService) GetTree(ctx context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error) {
	answer := &quoratev1.GetTreeResponse{}
	var spec quota.TreeSpec
	var policies []quota.PolicySpec
	size := func(v ledger.Reader) int { return v.Cells(r.GetName()) }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		var unknown *quota.Error
		spec, unknown = v.Tree(r.GetName())
		answer.Revision, policies = v.Revision(), v.PoliciesOf(r.GetName())
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer.Tree, answer.Policies, answer.Read = wire.FromTreeSpec(spec), wire.FromPolicySpecs(policies), read
	return answer, nil
}

// ListTrees lists all trees.
func (s TreeService) ListTrees(
	ctx context.Context, r *quoratev1.ListTreesRequest,
) (*quoratev1.ListTreesResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &quoratev1.ListTreesResponse{}
	var trees []quota.TreeSummary
	var policies []quota.PolicySpec
	size := func(v ledger.Reader) int { return v.Counts().Trees*treeCost + countCost(v, r.GetCountRequests()) }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		trees, answer.Revision = v.Trees(), v.Revision()
		if page.IsFirst() {
			policies = v.Policies()
		}
		if r.GetCountRequests() {
			trees = v.TreesWithRequests()
		}
		answer.Filtered = v.FiltersTrees()
		return nil
	})
	if err != nil {
		return nil, err
	}
	trees, answer.NextPageToken = wire.CutPage(page, slices.Values(trees), func(t quota.TreeSummary) string {
		return t.Name
	})
	for _, t := range trees {
		answer.Trees = append(answer.Trees, wire.FromTreeSummary(t))
	}
	answer.Policies, answer.Read = wire.FromPolicySpecs(policies), read
	return answer, nil
}

// GetUsage shows a node or a subtree.
func (s TreeService) GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	asked, err := wire.OpenPage(r, wire.DefaultUsagePage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	after, err := asked.UsagePosition(r.GetFullestFirst())
	if err != nil {
		return nil, wire.ToError(err)
	}
	query := quota.UsageQuery{
		Tree: r.GetTree(), Node: r.GetNode(), Subtree: r.GetSubtree(), MaxDepth: int(r.GetMaxDepth()),
		AtLeastPercent: int(r.GetAtLeastPercent()), FullestFirst: r.GetFullestFirst(), After: after,
		CountWaiting: r.GetCountWaiting(), NameContains: r.GetNameContains(),
		Max: asked.Max,
	}
	var page quota.UsagePage
	filtered := false
	size := func(v ledger.Reader) int {
		if r.GetSubtree() {
			return v.Cells(r.GetTree())*usageCost + countCost(v, r.GetCountWaiting())
		}
		return 1 + countCost(v, r.GetCountWaiting())
	}
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		var unknown *quota.Error
		page, unknown = v.Usage(query)
		filtered = v.FiltersUsage(r.GetTree(), r.GetNode())
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.GetUsageResponse{
		NextPageToken: asked.TokenAfterUsage(page.Next, query.FullestFirst), Read: read, Filtered: filtered,
	}
	for _, n := range page.Nodes {
		answer.Nodes = append(answer.Nodes, wire.FromNodeUsage(n))
	}
	return answer, nil
}

func countCost(v ledger.Reader, counts bool) int {
	if !counts {
		return 0
	}
	return v.Counts().Waiting
}

func revisionsOf(v ledger.Reader, r *adminv1.ListRevisionsRequest, before uint64, most int) []quota.Revision {
	if r.GetTree() != "" {
		return v.RevisionsOf(r.GetTree(), r.GetNode(), before, most)
	}
	return v.Revisions(before, most)
}

// ListPrincipals shows use and limits of users or groups.
func (s TreeService) ListPrincipals(
	ctx context.Context, r *quoratev1.ListPrincipalsRequest,
) (*quoratev1.ListPrincipalsResponse, error) {
	asked, err := wire.OpenPage(r, wire.DefaultPrincipalPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	kind := quota.AUser
	if r.GetKind() == quoratev1.HolderKind_HOLDER_KIND_GROUP {
		kind = quota.AGroup
	}
	var page []quota.PrincipalUsage
	more := false
	read, err := s.readInTurn(ctx, r.GetRead(), func(v ledger.Reader) error {
		var unknown *quota.Error
		page, more, unknown = v.Principals(r.GetTree(), kind, r.GetName(), asked.Name(), asked.Max)
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListPrincipalsResponse{Read: read}
	if more && len(page) > 0 {
		answer.NextPageToken = asked.TokenAfterName(page[len(page)-1].Name)
	}
	for _, p := range page {
		answer.Principals = append(answer.Principals, wire.FromPrincipalUsage(p))
	}
	return answer, nil
}
