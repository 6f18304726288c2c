package request

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// ListOptions are the flags of the commands that list allocations.
type ListOptions struct {
	*cli.Env
	tree, node string
	labels     []string
	limit      int
	Leases     bool
}

func newAllocationsCmd(c *cli.Env) *cobra.Command {
	o := &ListOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "allocations",
		Short: "List allocations, oldest first",
		Example: `  quorate allocations --tree cern --node atlas/physics
  quorate allocations --label job=nightly -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.RunList(cmd.Context()) },
	}
	o.AddFlags(cmd)
	return cmd
}

// AddFlags adds the filters.
func (o *ListOptions) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.tree, "tree", "", "only allocations with a claim in this tree")
	flags.StringVar(&o.node, "node", "", "only those counted at this node of the tree or below it")
	flags.StringArrayVar(&o.labels, "label", nil,
		"only those with this label `name=value`; may be repeated, all must match")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
}

// RunList prints the allocations, or the leases if Leases is set.
func (o *ListOptions) RunList(ctx context.Context) error {
	if o.node != "" && o.tree == "" {
		return cli.Usagef("--node needs --tree")
	}
	if o.limit < 0 {
		return cli.Usagef("--limit must not be negative")
	}
	labels, err := labelPairs(o.labels)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetchPages(ctx, quorate, labels)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.ReportFiltered(all)
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(all, func(p *cli.Page) error {
		if o.Leases {
			return p.Table(o.Units.LeaseRows(all.GetAllocations(), all.GetRead().GetLedgerTimeMs()))
		}
		return p.Table(o.Units.AllocationRows(all.GetAllocations()...))
	})
}

// fetchPages joins pages into one answer, up to --limit.
func (o *ListOptions) fetchPages(
	ctx context.Context, quorate *client.Client, labels map[string]string,
) (*quoratev1.ListAllocationsResponse, error) {
	const pageSize = 1000
	all := &quoratev1.ListAllocationsResponse{}
	request := &quoratev1.ListAllocationsRequest{
		Tree: o.tree, Node: o.node, Labels: labels, PageSize: pageSize, Read: o.ReadOptions(), Leases: o.Leases,
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
		all.Filtered = page.GetFiltered()
		all.NextPageToken = page.GetNextPageToken()
		request.PageToken = page.GetNextPageToken()
		if request.GetPageToken() == "" || len(all.GetAllocations()) == o.limit {
			return all, nil
		}
	}
}

func newAllocationCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "allocation ID",
		Short: "Show one allocation, held or recently ended",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return showAllocation(cmd.Context(), c, args[0]) },
	}
}

func showAllocation(ctx context.Context, c *cli.Env, id string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.GetAllocation(ctx,
		&quoratev1.GetAllocationRequest{Id: id, Read: c.ReadOptions()})
	if err != nil {
		return err
	}
	c.ReportAge(answer.GetRead())
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error {
		return c.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetRead().GetLedgerTimeMs())
	})
}
