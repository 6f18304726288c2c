package request

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// listPage is how many allocations are asked for at once.
const listPage = 1000

// ListOptions are the flags of the commands that list allocations.
type ListOptions struct {
	*cli.Env
	at                       cli.Place
	user, application, owner string
	prefix, state            string
	labels                   []string
	limit                    int
	Leases                   bool
}

// listedStates are the states that a list can be limited to.
var listedStates = map[string]quoratev1.AllocationState{
	"":         quoratev1.AllocationState_ALLOCATION_STATE_UNSPECIFIED,
	"held":     quoratev1.AllocationState_ALLOCATION_STATE_HELD,
	"reserved": quoratev1.AllocationState_ALLOCATION_STATE_RESERVED,
}

func newAllocationListCmd(c *cli.Env) *cobra.Command {
	o := &ListOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List allocations, oldest first",
		Example: `  quorate allocation list --at cern:atlas/physics
  quorate allocation list --user kim --state reserved
  quorate allocation list --label job=nightly -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.RunList(cmd.Context()) },
	}
	o.AddFlags(cmd)
	return cmd
}

// AddFlags adds the filters.
func (o *ListOptions) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.addFilters(flags)
	flags.StringVar(&o.state, "state", "", "only those in this state: held or reserved")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
	cli.CompleteFlag(cmd, "state", "held", "reserved")
}

// addFilters adds the filters that also select what a command changes.
func (o *ListOptions) addFilters(flags *pflag.FlagSet) {
	cli.PlaceVar(flags, &o.at, "only allocations counted")
	cli.NameVar(flags, &o.user, "user", "only those of this user")
	cli.NameVar(flags, &o.application, "application", "only those of this application")
	cli.NameVar(flags, &o.owner, "owner", "only those that this identity has made, such as ann")
	cli.NameVar(flags, &o.prefix, "prefix", "only those whose ids begin so")
	flags.StringArrayVar(&o.labels, "label", nil,
		"only those with this label `NAME=VALUE`; may be repeated, all must match")
}

func (o *ListOptions) isSet(flags *pflag.FlagSet) bool {
	return slices.ContainsFunc([]string{"at", "user", "application", "owner", "prefix", "label"},
		flags.Changed)
}

func (o *ListOptions) request() (*quoratev1.ListAllocationsRequest, error) {
	state, known := listedStates[o.state]
	switch {
	case o.limit < 0:
		return nil, cli.Usagef("--limit must not be negative")
	case !known:
		return nil, cli.Usagef("--state is held or reserved, not %q", o.state)
	}
	labels, err := labelPairs(o.labels)
	if err != nil {
		return nil, err
	}
	return &quoratev1.ListAllocationsRequest{
		Tree: o.at.Tree, Node: o.at.Node, Labels: labels, PageSize: listPage, Read: o.ReadOptions(), Leases: o.Leases,
		User: o.user, Application: o.application, Owner: o.owner, Namespace: o.Namespace, IdPrefix: o.prefix,
		State: state,
	}, nil
}

// RunList prints the allocations, or the leases if Leases is set.
func (o *ListOptions) RunList(ctx context.Context) error {
	request, err := o.request()
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetchPages(ctx, quorate, request)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.ReportFiltered(all)
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(all, func(p *cli.Page) error {
		return p.Table(o.rows(all))
	})
}

func (o *ListOptions) rows(all *quoratev1.ListAllocationsResponse) [][]string {
	now := all.GetRead().GetLedgerTimeMs()
	rows := o.Units.AllocationRows(all.GetAllocations()...)
	if o.Leases {
		rows = o.Units.LeaseRows(all.GetAllocations(), now)
	}
	if o.Output == cli.OutputWide {
		rows = cli.WithDetails(rows, all.GetAllocations(), now)
	}
	return rows
}

// fetchPages joins pages into one answer, up to --limit.
func (o *ListOptions) fetchPages(
	ctx context.Context, quorate *client.Client, request *quoratev1.ListAllocationsRequest,
) (*quoratev1.ListAllocationsResponse, error) {
	return cli.FirstPages(ctx, quorate.Allocations.ListAllocations, request, o.limit,
		func(page *quoratev1.ListAllocationsResponse) int { return len(page.GetAllocations()) })
}

func newAllocationShowCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
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
