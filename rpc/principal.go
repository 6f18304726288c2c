package rpc

import (
	"context"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// ListPrincipals shows use and limits of users or groups.
func (s treeService) ListPrincipals(ctx context.Context, r *quoratev1.ListPrincipalsRequest) (*quoratev1.ListPrincipalsResponse, error) {
	after, err := openPrincipalToken(r.GetPageToken())
	if err != nil {
		return nil, toError(err)
	}
	kind := quota.AUser
	if r.GetKind() == quoratev1.HolderKind_HOLDER_KIND_GROUP {
		kind = quota.AGroup
	}
	var page []quota.PrincipalUsage
	more := false
	read, err := s.readInTurn(ctx, r.GetRead(), func(v ledger.View) error {
		var unknown *quota.Error
		page, more, unknown = v.Principals(r.GetTree(), kind, r.GetName(), after, pageSize(r.GetPageSize(), defaultPrincipalPage))
		return refusalOrNil(unknown)
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListPrincipalsResponse{NextPageToken: principalPageToken(page, more), Read: read}
	for _, p := range page {
		answer.Principals = append(answer.Principals, fromPrincipalUsage(p))
	}
	return answer, nil
}

func fromPrincipalUsage(p quota.PrincipalUsage) *quoratev1.PrincipalUsage {
	wire := &quoratev1.PrincipalUsage{Name: p.Name, Groups: fromLabels(p.Groups)}
	for _, n := range p.Nodes {
		wire.Nodes = append(wire.Nodes, &quoratev1.PrincipalNode{
			Node: n.Path, Used: fromVector(n.Used), Applications: n.Applications,
			Limits: fromVector(n.Limits), MaxApplications: int64(n.MaxApplications), Wildcard: n.Wildcard,
		})
	}
	return wire
}
