package config

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/procedures"
)

// applyTrees applies a configuration, unless a member runs a version that would leave out parts of it.
func applyTrees(
	ctx context.Context, quorate *client.Client, request *quoratev1.ApplyTreesRequest,
) (*quoratev1.ApplyTreesResponse, error) {
	if needed := procedures.LevelOf(request); needed > 0 {
		list, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
		if err != nil {
			return nil, err
		}
		if err := checkLevel(list.GetMembers(), needed); err != nil {
			return nil, err
		}
	}
	return quorate.Trees.ApplyTrees(ctx, request)
}

// checkLevel refuses what needs a feature level that a member is known not to have. A server of this version refuses it
// too, but one of an earlier version cannot: it does not know the fields. Members that have not said anything do not
// count, so that a server that is down does not keep a cluster that has the level from being configured.
func checkLevel(members []*adminv1.Member, needed uint32) error {
	var behind []string
	for _, m := range members {
		if level := m.GetFeatureLevel(); level > 0 && level < needed {
			behind = append(behind, fmt.Sprintf("%s (version %s, feature level %d)", m.GetId(), m.GetVersion(), level))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("this needs feature level %d on all members, and "+
		"these do not have it: %s; upgrade them, or remove them from the cluster", needed, strings.Join(behind, ", ")))
}
