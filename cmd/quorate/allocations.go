package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type allocationsOptions struct {
	*cli
	tree, node string
	labels     []string
	limit      int
	leases     bool
}

func newAllocationsCmd(c *cli) *cobra.Command {
	o := &allocationsOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "allocations",
		Short: "List what is held, oldest first",
		Example: `  quorate allocations --tree cern --node atlas/physics
  quorate allocations --label job=nightly -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *allocationsOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.tree, "tree", "", "only allocations with a claim in this tree")
	flags.StringVar(&o.node, "node", "", "only those counted at this node of the tree or below it")
	flags.StringArrayVar(&o.labels, "label", nil, "only those that carry this `name=value`; several must all hold")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
}

func (o *allocationsOptions) run(ctx context.Context) error {
	if o.node != "" && o.tree == "" {
		return usagef("--node needs --tree: a node is a place in a tree")
	}
	if o.limit < 0 {
		return usagef("--limit must not be negative")
	}
	labels, err := labelPairs(o.labels)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetch(ctx, quorate, labels)
	if err != nil {
		return err
	}
	o.sayAge(all.GetRead())
	o.learnForTable(ctx, quorate)
	return o.print(all, func(p *page) error {
		if o.leases {
			return p.table(o.units.leaseRows(all.GetAllocations(), all.GetRead().GetLedgerTimeMs()))
		}
		return p.table(o.units.allocationRows(all.GetAllocations()...))
	})
}

// fetch joins pages into one answer until it has as many as were asked for.
func (o *allocationsOptions) fetch(
	ctx context.Context, quorate *client.Client, labels map[string]string,
) (*quoratev1.ListAllocationsResponse, error) {
	const pageSize = 1000
	all := &quoratev1.ListAllocationsResponse{}
	request := &quoratev1.ListAllocationsRequest{
		Tree: o.tree, Node: o.node, Labels: labels, PageSize: pageSize, Read: o.read(), Leases: o.leases,
	}
	for {
		if o.limit > 0 {
			request.PageSize = int32(min(o.limit-len(all.GetAllocations()), pageSize))
		}
		page, err := quorate.Allocations.ListAllocations(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Allocations = append(all.Allocations, page.GetAllocations()...)
		all.Read = page.GetRead()
		all.NextPageToken = page.GetNextPageToken()
		request.PageToken = page.GetNextPageToken()
		if request.GetPageToken() == "" || len(all.GetAllocations()) == o.limit {
			return all, nil
		}
	}
}
