package lease

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

type itemsSetOptions struct {
	*cli.Env
	state string
	data  []string
}

func newItemSetCmd(c *cli.Env) *cobra.Command {
	o := &itemsSetOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "set TREE:RESOURCE:NAME...",
		Short: "Change the state or data of unallocated items, all or none",
		Long: `Change the state or data of unallocated items, all or none. Requests that wait for them are granted in
the same step. An allocated item belongs to its holder: renewing or releasing changes it.`,
		Example: `  quorate item set ci:aws-account:account-1 ci:aws-account:account-2 --new-state free
  quorate item set ci:aws-account:account-1 --data region=eu`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.runItemsSet(cmd.Context(), args) },
	}
	cli.NameVar(cmd.Flags(), &o.state, "new-state", "the new state, for example free or dirty")
	cmd.Flags().StringArrayVar(&o.data, "data", nil,
		"`NAME=VALUE` to change in their data; an empty value removes the name")
	return cmd
}

func (o *itemsSetOptions) runItemsSet(ctx context.Context, items []string) error {
	data, err := request.ParsePairs("--data", o.data)
	if err != nil {
		return err
	}
	if o.state == "" && len(data) == 0 {
		return cli.Usagef("name what to change: --new-state STATE, or --data name=value")
	}
	changes := &quoratev1.UpdateItemsRequest{}
	for _, text := range items {
		item, err := request.ParseItem(text)
		if err != nil {
			return err
		}
		changes.Updates = append(changes.Updates, &quoratev1.ItemUpdate{Item: item, State: o.state, UserData: data})
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Items.UpdateItems(ctx, changes)
	if err != nil {
		return err
	}
	o.Messagef("changed %d", len(answer.GetItems()))
	return o.Print(answer, func(p *cli.Page) error { return p.Table(itemRows(answer.GetItems(), 0)) })
}

type itemsResetOptions struct {
	*cli.Env
	state, to string
	idle      time.Duration
	dryRun    bool
}

func newItemResetCmd(c *cli.Env) *cobra.Command {
	o := &itemsResetOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "reset TREE:RESOURCE --state STATE --new-state STATE",
		Short: "Take items from holders that have stopped renewing, in one step",
		Long: `Take items in a state from holders that have not renewed for a while, all in one step. Their
allocations shrink, or end with their last item. This is for holders without a TTL; a lease ends by itself.`,
		Example: `  quorate item reset ci:aws-account --state leased --idle 2h --new-state dirty --dry-run`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.runItemsReset(cmd.Context(), args[0]) },
	}
	cli.NameVar(cmd.Flags(), &o.state, "state", "only items in this state")
	cli.NameVar(cmd.Flags(), &o.to, "new-state", "the new state, for example free or dirty")
	cli.SpanVar(cmd.Flags(), &o.idle, "idle", 0, "only items whose holder has not renewed for this time (default: all)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the items that would be taken, and take none")
	return cmd
}

func (o *itemsResetOptions) runItemsReset(ctx context.Context, argument string) error {
	tree, resource, _ := strings.Cut(argument, ":")
	switch {
	case tree == "" || resource == "":
		return cli.Usagef("%q is not a resource: write TREE:RESOURCE", argument)
	case o.state == "" || o.to == "":
		return cli.Usagef("name the items and their new state: --state STATE --new-state STATE")
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Items.ResetItems(ctx, &quoratev1.ResetItemsRequest{
		Tree: tree, Resource: resource, State: o.state, IdleMs: o.idle.Milliseconds(), NewState: o.to, DryRun: o.dryRun,
	})
	if err != nil {
		return err
	}
	done := "took"
	if o.dryRun {
		done = "would take"
	}
	o.Messagef("%s %d", done, len(answer.GetItems()))
	return o.Print(answer, func(p *cli.Page) error {
		rows := [][]string{{"ITEM", "OWNER", "ALLOCATION"}}
		for _, item := range answer.GetItems() {
			rows = append(
				rows, []string{
					tree + ":" + resource + ":" + item.GetName(), item.GetOwner(),
					cli.NameText(item.GetAllocation(), cli.DefaultNamespace),
				})
		}
		return p.Table(rows)
	})
}
