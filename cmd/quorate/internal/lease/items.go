package lease

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

type itemsOptions struct {
	*cli.Env
	state, owner, name string
	data, counts       bool
	limit              int
	follow             cli.Following
}

func newItemListCmd(c *cli.Env) *cobra.Command {
	o := &itemsOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list TREE[:RESOURCE]",
		Short: "List, count or change items of itemized resources",
		Long: `List the items of the itemized resources of a tree, or of one of them, by name. With --counts, count
them by state and by owner instead, in all trees if none is named. "quorate item set" changes the states of
unallocated items.

The data of items may contain credentials: it is shown only with --show-data, and only by -o json or yaml.`,
		Example: `  quorate item list ci:aws-account
  quorate item list ci:aws-account --state dirty
  quorate item list --counts
  quorate item list ci:aws-account --watch`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runItems(cmd.Context(), strings.Join(args, ""))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.state, "state", "", "only items in this state")
	flags.StringVar(&o.owner, "owner", "", "only items that this user holds")
	flags.StringVar(&o.name, "name", "", "only items of this name")
	flags.BoolVar(&o.data, "show-data", false, "also show the data of the items, which may contain credentials")
	flags.BoolVar(&o.counts, "counts", false, "count them by state and by owner")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
	o.follow.AddFlag(cmd)
	return cmd
}

func (o *itemsOptions) runItems(ctx context.Context, argument string) error {
	tree, resource, named := strings.Cut(argument, ":")
	filtered := o.state != "" || o.owner != "" || o.name != "" || o.data || o.limit != 0
	switch {
	case named && (tree == "" || resource == ""):
		return cli.Usagef("%q is not a resource: write TREE for all resources of a tree, or TREE:RESOURCE", argument)
	case tree == "" && !o.counts:
		return cli.Usagef(
			"name a tree: quorate item list TREE, or TREE:RESOURCE; --counts without a name counts those of " +
				"all trees")
	case o.counts && filtered:
		return cli.Usagef("--counts cannot be combined with other flags")
	case o.limit < 0:
		return cli.Usagef("--limit must not be negative")
	}
	if tree != "" {
		o.follow.Trees = []string{tree}
	}
	o.follow.Concerns = func(m *quoratev1.WatchChangesResponse) bool { return concernsItems(m, resource, o.counts) }
	return o.RunOrFollow(ctx, o.follow, func(ctx context.Context, quorate *client.Client) error {
		if o.counts {
			return o.countItems(ctx, quorate, tree, resource)
		}
		return o.showItems(ctx, quorate, tree, resource)
	})
}

// concernsItems includes, with withQueue, changes in the number of waiting requests. An empty resource is any.
func concernsItems(m *quoratev1.WatchChangesResponse, resource string, withQueue bool) bool {
	return slices.ContainsFunc(m.GetTrees(), func(c *quoratev1.TreeChanges) bool {
		return c.GetMany() || withQueue && c.GetQueue() ||
			slices.ContainsFunc(c.GetItems(), func(name string) bool { return resource == "" || name == resource })
	})
}

func (o *itemsOptions) showItems(ctx context.Context, quorate *client.Client, tree, resource string) error {
	all, err := o.fetchItems(ctx, quorate, &quoratev1.ListItemsRequest{
		Tree: tree, Resource: resource, State: o.state, Owner: o.owner, Name: o.name, UserData: o.data,
		Read: o.ReadOptions(),
	})
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	return o.Print(all, func(p *cli.Page) error {
		items := slices.SortedStableFunc(slices.Values(all.GetItems()), compareItems)
		return p.Table(itemRows(items, all.GetRead().GetLedgerTimeMs()))
	})
}

// compareItems orders items as people count: account-2 comes before account-10.
func compareItems(a, b *quoratev1.Item) int {
	return cmp.Or(cmp.Compare(a.GetName().GetResource(), b.GetName().GetResource()),
		cli.CompareNatural(a.GetName().GetName(), b.GetName().GetName()))
}

// fetchItems joins pages into one answer, up to --limit.
func (o *itemsOptions) fetchItems(
	ctx context.Context, quorate *client.Client, query *quoratev1.ListItemsRequest,
) (*quoratev1.ListItemsResponse, error) {
	return cli.FirstPages(ctx, quorate.Items.ListItems, query, o.limit,
		func(page *quoratev1.ListItemsResponse) int { return len(page.GetItems()) })
}

// itemRows is the table of items at a moment of ledger time, if that is known.
func itemRows(items []*quoratev1.Item, nowMs int64) [][]string {
	rows := [][]string{{"ITEM", "STATE", "OWNER", "ALLOCATION", "FENCE", "UPDATED", "NOTES"}}
	for _, item := range items {
		fence := ""
		if item.GetAllocation() != nil {
			fence = strconv.FormatUint(item.GetFence(), 10)
		}
		rows = append(rows, []string{
			request.ItemText(item.GetName()), item.GetState(), item.GetOwner(), cli.NameText(item.GetAllocation(),
				cli.DefaultNamespace), fence,
			cli.FormatTime(item.GetUpdatedAt()), itemNotes(item, nowMs),
		})
	}
	return rows
}

func itemNotes(item *quoratev1.Item, nowMs int64) string {
	switch {
	case item.GetLeaving():
		return "removed when released"
	case item.GetExpiresLedgerMs() > 0 && nowMs > 0:
		return "removed in " + cli.RoundSpan(item.GetExpiresLedgerMs()-nowMs) + " unless allocated"
	}
	return ""
}

func (o *itemsOptions) countItems(ctx context.Context, quorate *client.Client, tree, resource string) error {
	answer, err := quorate.Items.CountItems(ctx,
		&quoratev1.CountItemsRequest{Tree: tree, Resource: resource, Read: o.ReadOptions()})
	if err != nil {
		return err
	}
	o.ReportAge(answer.GetRead())
	return o.Print(answer, func(p *cli.Page) error {
		rows := [][]string{{"RESOURCE", "STATES", "OWNERS", "WAITING"}}
		for _, c := range answer.GetCounts() {
			rows = append(rows, []string{
				c.GetTree() + ":" + c.GetResource(), countsText(c.GetStates()), countsText(c.GetOwners()),
				strconv.FormatInt(c.GetWaiting(), 10),
			})
		}
		return p.Table(rows)
	})
}

// countsText writes counts by name; it omits those without a name, which have no owner.
func countsText(counts map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if name != "" {
			parts = append(parts, strconv.FormatInt(counts[name], 10)+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}
