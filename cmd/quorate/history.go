package main

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type historyOptions struct {
	*cli
	limit  int32
	before uint64
}

func newHistoryCmd(c *cli) *cobra.Command {
	o := &historyOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show who changed the configuration, when and why",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().Int32Var(&o.limit, "limit", 20, "show at most this many, newest first")
	cmd.Flags().Uint64Var(&o.before, "before", 0, "only those before this revision")
	return cmd
}

func (o *historyOptions) run(ctx context.Context) error {
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ListRevisions(ctx, &quoratev1.ListRevisionsRequest{
		PageSize: o.limit,
		Before:   o.before,
		Read:     o.read(),
	})
	if err != nil {
		return err
	}
	o.sayAge(answer.GetRead())
	o.learnForTable(ctx, quorate)
	return o.print(answer, func(p *page) error {
		for _, revision := range answer.GetRevisions() {
			o.units.drawRevision(p, revision)
		}
		return nil
	})
}

func (u units) drawRevision(p *page, r *quoratev1.Revision) {
	by, why := "", ""
	if r.GetActor() != "" {
		by = "  " + r.GetActor()
	}
	if r.GetReason() != "" {
		why = ": " + r.GetReason()
	}
	p.line("revision %d  %s%s%s", r.GetRevision(), date(r.GetAt()), by, why)
	for _, change := range r.GetChanges() {
		p.line("  %s", u.change(change))
	}
	if more := int(r.GetChangeCount()) - len(r.GetChanges()); more > 0 {
		p.line("  and %d more", more)
	}
}
