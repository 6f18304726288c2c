package request

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type releaseOptions struct {
	*cli.Env
	fence   uint64
	restore bool
	items   []string
	state   string
	filter  ListOptions
	isSure  bool
}

func newReleaseCmd(c *cli.Env) *cobra.Command {
	o := &releaseOptions{Env: c, filter: ListOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "release ID...",
		Short: "End allocations and free everything they held",
		Long: `End allocations and free everything they held, or take requests out of the queue. Repeating it is safe:
an allocation that has already ended is shown again. Each of several ids is ended on its own: those that cannot be ended
are named, and the exit code is that of the first.

Instead of ids, the filters of "quorate allocation list" select what is released: everything held or reserved that they
match, but no requests that wait. At a terminal the command asks before that.

With --restore a reservation is cancelled: if nothing else has changed in its trees since, the state before it is
restored. Otherwise the allocations that it preempted or moved are restored if all of them still fit within the limits,
and stay as they are if not. A confirmed reservation has nothing to restore.

With --only, just these items are released; the allocation keeps the rest, and ends with its last item.`,
		Example: `  quorate release job-1
  quorate release job-1 job-2 job-3
  quorate release --label run=nightly --user kim
  quorate release job-4 --new-state dirty
  quorate release job-3 --restore
  quorate release job-4 --only ci:aws-account:account-1`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.runRelease(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.items, "only", nil, "release only the item `TREE:RESOURCE:NAME`; may be repeated")
	flags.BoolVar(&o.restore, "restore", false, "cancel a reservation, and restore what it preempted")
	flags.Uint64Var(&o.fence, "fence", 0, "fence that it must have (default: any)")
	flags.StringVar(&o.state, "new-state", "", "new state of its items (default: the setting of the resource)")
	flags.BoolVar(&o.isSure, "yes", false, "do not ask at a terminal before everything is released that filters match")
	o.filter.addFilters(flags)
	return cmd
}

func (o *releaseOptions) runRelease(cmd *cobra.Command, ids []string) error {
	isFiltered := o.filter.isSet(cmd.Flags())
	isSingle := o.state != "" || len(o.items) > 0 || o.fence != 0 || o.restore
	switch {
	case len(ids) == 0 && !isFiltered:
		return cli.Usagef("name the ids of allocations, or filters such as --label name=value")
	case len(ids) > 0 && isFiltered:
		return cli.Usagef("name either ids or filters")
	case isSingle && len(ids) != 1:
		return cli.Usagef("--only, --new-state, --fence and --restore need exactly one id")
	case o.restore && (o.state != "" || len(o.items) > 0):
		return cli.Usagef("--restore cancels a whole reservation: leave out --only and --new-state")
	case o.restore:
		namespace, id, err := o.SplitID(ids[0])
		if err != nil {
			return err
		}
		return cancelReservation(cmd.Context(), o.Env,
			&quoratev1.CancelRequest{Namespace: namespace, Id: id, Fence: o.fence})
	case len(ids) == 1:
		return o.releaseOne(cmd.Context(), ids[0])
	}
	quorate, ctx, cancel, err := o.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer cancel()
	requests := make([]*quoratev1.ReleaseRequest, len(ids))
	for i, text := range ids {
		namespace, id, err := o.SplitID(text)
		if err != nil {
			return err
		}
		requests[i] = &quoratev1.ReleaseRequest{Namespace: namespace, Id: id}
	}
	if isFiltered {
		if requests, err = o.selectMatches(ctx, quorate); err != nil || len(requests) == 0 {
			return err
		}
	}
	return o.releaseAll(ctx, quorate, requests)
}

func (o *releaseOptions) releaseOne(ctx context.Context, id string) error {
	namespace, id, err := o.SplitID(id)
	if err != nil {
		return err
	}
	request := &quoratev1.ReleaseRequest{Namespace: namespace, Id: id, Fence: o.fence, ItemState: o.state}
	for _, text := range o.items {
		item, err := ParseItem(text)
		if err != nil {
			return err
		}
		request.Items = append(request.Items, item)
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Release(ctx, request)
	if err != nil {
		return err
	}
	o.Messagef("released")
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(answer, func(p *cli.Page) error { return o.Units.DrawAllocation(p, answer.GetAllocation(), 0) })
}

// selectMatches returns releases of what the filters match, once a person at a terminal has agreed to end it. They have
// the fences of what was listed, so that nothing else is ended if it has the id meanwhile.
func (o *releaseOptions) selectMatches(
	ctx context.Context, quorate *client.Client,
) ([]*quoratev1.ReleaseRequest, error) {
	request, err := o.filter.request()
	if err != nil {
		return nil, err
	}
	all, err := o.filter.fetchPages(ctx, quorate, request)
	if err != nil {
		return nil, err
	}
	var ids []string
	var requests []*quoratev1.ReleaseRequest
	for _, a := range all.GetAllocations() {
		ids = append(ids, cli.NameText(a, cli.DefaultNamespace))
		requests = append(requests, &quoratev1.ReleaseRequest{
			Namespace: a.GetNamespace(), Id: a.GetId(), Fence: a.GetFence(),
		})
	}
	if len(ids) == 0 {
		o.Messagef("no allocation matches; nothing was released")
		return nil, nil
	}
	if o.isSure {
		return requests, nil
	}
	const named = 10
	shown := strings.Join(ids[:min(len(ids), named)], ", ")
	if len(ids) > named {
		shown += ", ..."
	}
	return requests, o.Confirm(fmt.Sprintf("This would release %d allocations: %s.", len(ids), shown))
}

// releaseBatch is how many releases are sent at once; the servers allow 1,000.
const releaseBatch = 500

// releaseAll ends allocations in their order and prints them. Its error is the first failure, if there is one.
func (o *releaseOptions) releaseAll(
	ctx context.Context, quorate *client.Client, requests []*quoratev1.ReleaseRequest,
) error {
	all, failed := &quoratev1.BatchReleaseResponse{}, error(nil)
	for batch := range slices.Chunk(requests, releaseBatch) {
		answer, err := quorate.Allocations.BatchRelease(ctx, &quoratev1.BatchReleaseRequest{Requests: batch})
		if err != nil {
			return fmt.Errorf("%d of %d allocations were released before this: %w", len(all.GetOutcomes()), len(requests), err)
		}
		all.Outcomes = append(all.Outcomes, answer.GetOutcomes()...)
	}
	var ended []*quoratev1.Allocation
	var names []string
	for i, outcome := range all.GetOutcomes() {
		if failure := outcome.GetFailure(); failure != nil {
			err := client.FailureError(failure)
			o.Messagef("%s: %s", o.IDText(requests[i]), cli.ErrorText(err))
			failed = cmp.Or(failed, err)
			continue
		}
		ended, names = append(ended, outcome.GetReleased().GetAllocation()),
			append(names, o.IDText(requests[i]))
	}
	o.Messagef("released %d of %d", len(ended), len(requests))
	o.LearnUnitsForTable(ctx, quorate)
	err := o.PrintNamed(all, func() []string { return names }, func(p *cli.Page) error {
		return p.Table(o.Units.AllocationRows(ended...))
	})
	if err == nil && failed != nil {
		err = &cli.ExitError{Code: cli.ExitCodeOf(failed), Ours: true}
	}
	return err
}

// ParseItem parses TREE:RESOURCE:NAME.
func ParseItem(text string) (*quoratev1.ItemName, error) {
	parts := strings.Split(text, ":")
	for _, part := range parts {
		if part == "" || len(parts) != 3 {
			return nil, cli.Usagef(
				"%q is not an item: write TREE:RESOURCE:NAME, for example ci:aws-account:account-1", text)
		}
	}
	return &quoratev1.ItemName{Tree: parts[0], Resource: parts[1], Name: parts[2]}, nil
}

// ItemText writes an item as ParseItem takes it.
func ItemText(item *quoratev1.ItemName) string {
	return item.GetTree() + ":" + item.GetResource() + ":" + item.GetName()
}
