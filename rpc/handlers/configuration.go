package handlers

import (
	"context"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// ConfigurationService shows the whole configuration, and its history.
type ConfigurationService struct {
	Service
}

// GetConfiguration shows all trees at one point of the log, or one subtree.
func (s ConfigurationService) GetConfiguration(
	ctx context.Context, r *adminv1.GetConfigurationRequest,
) (*adminv1.GetConfigurationResponse, error) {
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

func (s ConfigurationService) readConfiguration(
	ctx context.Context, r *adminv1.GetConfigurationRequest,
) (*adminv1.GetConfigurationResponse, error) {
	if at := wire.ToSubtree(r); at != nil {
		return s.getSubtree(ctx, r.GetRead(), *at)
	}
	answer := &adminv1.GetConfigurationResponse{}
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

func (s ConfigurationService) getSubtree(
	ctx context.Context, o *quoratev1.ReadOptions, at quota.Subtree,
) (*adminv1.GetConfigurationResponse, error) {
	answer := &adminv1.GetConfigurationResponse{}
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

// ListRevisions shows the history.
func (s ConfigurationService) ListRevisions(
	ctx context.Context, r *adminv1.ListRevisionsRequest,
) (*adminv1.ListRevisionsResponse, error) {
	if err := wire.CheckNode(r); err != nil {
		return nil, wire.ToError(err)
	}
	page, before, err := openNumbered(r, wire.DefaultRevisionPage)
	if err != nil {
		return nil, err
	}
	if before == 0 || r.GetBeforeRevision() > 0 && r.GetBeforeRevision() < before {
		before = r.GetBeforeRevision()
	}
	answer := &adminv1.ListRevisionsResponse{}
	var revisions []quota.Revision
	size := func(ledger.Reader) int { return page.Max * revisionCost }
	read, err := s.readBySize(ctx, r.GetRead(), size, func(v ledger.Reader) error {
		revisions, answer.Filtered = revisionsOf(v, r, before, page.Max+1), v.FiltersRevisions()
		return requirePlace(v, page, len(revisions), r)
	})
	if err != nil {
		return nil, err
	}
	if len(revisions) > page.Max {
		revisions = revisions[:page.Max]
		answer.NextPageToken = page.TokenAfterNumber(revisions[page.Max-1].Number)
	}
	for _, revision := range revisions {
		answer.Revisions = append(answer.Revisions, wire.FromRevision(revision))
	}
	answer.Read = read
	return answer, nil
}

// RollBack makes the configuration what it was.
func (s ConfigurationService) RollBack(
	ctx context.Context, r *adminv1.RollBackRequest,
) (*adminv1.RollBackResponse, error) {
	meta, err := wire.ToMeta(r, r.ExpectedRevision)
	if err != nil {
		return nil, wire.ToError(err)
	}
	result, write, err := s.decideChange(ctx, quota.RollBack{Meta: meta, Revision: r.GetRevision()}, r.GetDryRun(), nil)
	if err != nil {
		return nil, err
	}
	return &adminv1.RollBackResponse{Result: result, Write: write}, nil
}
