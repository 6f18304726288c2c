package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"math/big"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// runFullest shows the nodes of all trees, those first that use most of a limit.
func (o *usageOptions) runFullest(ctx context.Context) error {
	o.follow.Concerns = func(m *quoratev1.WatchChangesResponse) bool { return len(m.GetTrees()) > 0 }
	return o.RunOrFollow(ctx, o.follow, func(ctx context.Context, quorate *client.Client) error {
		list, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: o.ReadOptions()})
		if err != nil {
			return err
		}
		var all []treeNode
		trees := map[string]json.RawMessage{}
		for _, tree := range list.GetTrees() {
			at := cli.PlaceOf(tree.GetName(), "")
			usage, err := o.fetchUsage(ctx, quorate, at)
			if connect.CodeOf(err) == connect.CodeNotFound { // deleted since it was listed
				continue
			}
			if err != nil {
				return err
			}
			if trees[tree.GetName()], err = protojson.Marshal(usage); err != nil {
				return err
			}
			for _, n := range usage.GetNodes() {
				all = append(all, treeNode{at, n})
			}
		}
		o.ReportAge(list.GetRead())
		slices.SortStableFunc(all, func(a, b treeNode) int { return largestShare(b.node).Cmp(largestShare(a.node)) })
		names := make([]string, len(all))
		for i, n := range all {
			names[i] = cli.PlaceOf(n.at.Tree, n.node.GetNode()).String()
		}
		value := map[string]any{"trees": trees}
		return o.PrintNames(value, names, func(p *cli.Page) error {
			rows := o.usageRows(cli.Place{}, nil)
			for _, n := range all {
				rows = append(rows, o.usageRows(n.at, []*quoratev1.NodeUsage{n.node})[1:]...)
			}
			return p.Table(rows)
		})
	})
}

type treeNode struct {
	at   cli.Place
	node *quoratev1.NodeUsage
}

// largestShare is the largest share of a limit that a resource of a node uses; -1 without a limit. A limit of 0 is full
// as soon as something is held.
func largestShare(n *quoratev1.NodeUsage) *big.Rat {
	largest := big.NewRat(-1, 1)
	for _, r := range n.GetResources() {
		limit, isAmount := cmp.Or(r.GetEffective(), r.GetLimit()).GetValue().(*quoratev1.Limit_Amount)
		if !isAmount {
			continue
		}
		share := big.NewRat(0, 1)
		switch {
		case limit.Amount > 0:
			share.SetFrac64(r.GetSubtree(), limit.Amount)
		case r.GetSubtree() > 0:
			share.SetInt64(1 << 62)
		}
		if share.Cmp(largest) > 0 {
			largest = share
		}
	}
	return largest
}
