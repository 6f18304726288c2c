package config

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type historyOptions struct {
	*cli.Env
	limit  int32
	before uint64
}

func newHistoryCmd(c *cli.Env) *cobra.Command {
	o := &historyOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show who changed the configuration, when and why",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.runHistory(cmd.Context()) },
	}
	cmd.Flags().Int32Var(&o.limit, "limit", 20, "show at most this many, newest first")
	cmd.Flags().Uint64Var(&o.before, "before", 0, "only those before this revision")
	return cmd
}

func (o *historyOptions) runHistory(ctx context.Context) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ListRevisions(ctx, &quoratev1.ListRevisionsRequest{
		PageSize: o.limit,
		Before:   o.before,
		Read:     o.ReadOptions(),
	})
	if err != nil {
		return err
	}
	o.ReportAge(answer.GetRead())
	o.ReportFiltered(answer)
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(answer, func(p *cli.Page) error {
		for _, revision := range answer.GetRevisions() {
			drawRevision(o.Units, p, revision)
		}
		return nil
	})
}

func drawRevision(u cli.Units, p *cli.Page, r *quoratev1.Revision) {
	by, why, where := "", "", ""
	if r.GetActor() != "" {
		by = "  " + r.GetActor()
	}
	if r.GetReason() != "" {
		why = ": " + r.GetReason()
	}
	if r.GetSubtree() != nil {
		where = "  --at " + subtreeText(r.GetSubtree())
	}
	p.Linef("revision %d  %s%s%s%s", r.GetRevision(), cli.FormatTime(r.GetAt()), where, by, why)
	if q := r.GetRequest(); q != nil {
		p.Linef("  request %d of %s, approved by %s", q.GetId(), q.GetAsker(), strings.Join(q.GetApprovers(), ", "))
	}
	for _, change := range r.GetChanges() {
		p.Linef("  %s", changeText(u, change))
	}
	if more := int(r.GetChangeCount()) - len(r.GetChanges()); more > 0 {
		p.Linef("  and %d more", more)
	}
}
