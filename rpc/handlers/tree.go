package handlers

import (
	"context"

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

// TreeService shows and changes the configuration.
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

// GetConfiguration shows all trees at one point of the log, or one subtree.
func (s TreeService) GetConfiguration(
	ctx context.Context, r *quoratev1.GetConfigurationRequest,
) (*quoratev1.GetConfigurationResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	if r.GetTree() != "" && r.GetRevision() != 0 {
		return nil, wire.InvalidField("revision",
			"a past configuration is shown as a whole; leave out revision, or tree")
	}
	answer, err := s.readConfiguration(ctx, r)
	if err != nil || !r.GetManifest() {
		return answer, err
	}
	return writeManifest(answer, r.GetTree(), r.GetNode())
}

func (s TreeService) readConfiguration(
	ctx context.Context, r *quoratev1.GetConfigurationRequest,
) (*quoratev1.GetConfigurationResponse, error) {
	if at := wire.ToSubtree(r); at != nil {
		return s.getSubtree(ctx, r.GetRead(), *at)
	}
	answer := &quoratev1.GetConfigurationResponse{}
	var shown ledger.PastConfiguration
	size := ledger.Reader.AllCells
	if r.GetRevision() != 0 {
		size = func(ledger.Reader) int { return SmallRead + 1 } // trees that were removed since may be large
	}
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		var refused *quota.Error
		shown, answer.Revision, refused = configurationOf(v, r.GetRevision())
		return refusalOrNil(refused)
	})
	if err != nil {
		return nil, err
	}
	for _, spec := range shown.Trees {
		answer.Trees = append(answer.Trees, wire.FromTreeSpec(spec))
	}
	answer.Policies, answer.Read = wire.FromPolicySpecs(shown.Policies), read
	if section := shown.Access; section != nil && !section.IsEmpty() {
		answer.Access = wire.FromSection(*section)
	}
	return answer, nil
}

// configurationOf returns the present configuration, with its revision, if revision is 0.
func configurationOf(v ledger.Reader, revision uint64) (ledger.PastConfiguration, uint64, *quota.Error) {
	if revision != 0 {
		past, refused := v.ConfigurationAt(revision)
		return past, revision, refused
	}
	return ledger.PastConfiguration{
		Trees: v.Configuration(), Policies: v.Policies(), Access: v.Access(),
	}, v.Revision(), nil
}

func (s TreeService) getSubtree(
	ctx context.Context, o *quoratev1.ReadOptions, at quota.Subtree,
) (*quoratev1.GetConfigurationResponse, error) {
	answer := &quoratev1.GetConfigurationResponse{}
	var spec quota.TreeSpec
	size := func(v ledger.Reader) int { return v.Cells(at.Tree) }
	read, err := s.readBySize(ctx, o, size, func(v ledger.Reader) error {
		var refused *quota.Error
		spec, refused = v.Subtree(at)
		answer.Revision = v.Revision()
		return refusalOrNil(refused)
	})
	if err != nil {
		return nil, err
	}
	answer.Trees, answer.Read = []*quoratev1.Tree{wire.FromTreeSpec(spec)}, read
	return answer, nil
}

// ListTrees lists all trees.
func (s TreeService) ListTrees(
	ctx context.Context, r *quoratev1.ListTreesRequest,
) (*quoratev1.ListTreesResponse, error) {
	answer := &quoratev1.ListTreesResponse{}
	var trees []quota.TreeSummary
	var policies []quota.PolicySpec
	size := func(v ledger.Reader) int { return v.Counts().Trees*treeCost + countCost(v, r.GetCountRequests()) }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		trees, policies, answer.Revision = v.Trees(), v.Policies(), v.Revision()
		if r.GetCountRequests() {
			trees = v.TreesWithRequests()
		}
		answer.Filtered = v.FiltersTrees()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		answer.Trees = append(answer.Trees, wire.FromTreeSummary(t))
	}
	answer.Policies, answer.Read = wire.FromPolicySpecs(policies), read
	return answer, nil
}

// GetUsage shows a node or a subtree.
func (s TreeService) GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	after, err := wire.OpenUsageToken(r.GetPageToken(), r.GetFullestFirst())
	if err != nil {
		return nil, wire.ToError(err)
	}
	query := quota.UsageQuery{
		Tree: r.GetTree(), Node: r.GetNode(), Subtree: r.GetSubtree(), MaxDepth: int(r.GetMaxDepth()),
		AtLeastPercent: int(r.GetAtLeastPercent()), FullestFirst: r.GetFullestFirst(), After: after,
		CountWaiting: r.GetCountWaiting(), NameContains: r.GetNameContains(),
		Max: wire.PageSize(r.GetPageSize(), wire.DefaultUsagePage),
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
		NextPageToken: wire.UsagePageToken(page.Next, query.FullestFirst), Read: read, Filtered: filtered,
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

// ListRevisions shows the history.
func (s TreeService) ListRevisions(
	ctx context.Context, r *quoratev1.ListRevisionsRequest,
) (*quoratev1.ListRevisionsResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	answer := &quoratev1.ListRevisionsResponse{}
	var revisions []quota.Revision
	most := wire.PageSize(r.GetPageSize(), wire.DefaultRevisionPage)
	size := func(ledger.Reader) int { return most * revisionCost }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		revisions, answer.Filtered = revisionsOf(v, r, most), v.FiltersRevisions()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, revision := range revisions {
		answer.Revisions = append(answer.Revisions, wire.FromRevision(revision))
	}
	answer.Read = read
	return answer, nil
}

func revisionsOf(v ledger.Reader, r *quoratev1.ListRevisionsRequest, most int) []quota.Revision {
	if r.GetTree() != "" {
		return v.RevisionsOf(r.GetTree(), r.GetNode(), r.GetBefore(), most)
	}
	return v.Revisions(r.GetBefore(), most)
}

// ListPrincipals shows use and limits of users or groups.
func (s TreeService) ListPrincipals(
	ctx context.Context, r *quoratev1.ListPrincipalsRequest,
) (*quoratev1.ListPrincipalsResponse, error) {
	after, err := wire.OpenPrincipalToken(r.GetPageToken())
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
		page, more, unknown = v.Principals(r.GetTree(), kind, r.GetName(), after,
			wire.PageSize(r.GetPageSize(), wire.DefaultPrincipalPage))
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListPrincipalsResponse{NextPageToken: wire.PrincipalPageToken(page, more), Read: read}
	for _, p := range page {
		answer.Principals = append(answer.Principals, wire.FromPrincipalUsage(p))
	}
	return answer, nil
}
