package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type historyOptions struct {
	*cli.Env
	limit   int
	before  uint64
	at      cli.Place
	actor   string
	oneLine bool
}

func newRevisionListCmd(c *cli.Env) *cobra.Command {
	o := &historyOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list [REVISION]",
		Short: "Show who changed the configuration, when and why",
		Long: `Show who changed the configuration, when and why, newest first, or one revision. The servers keep the last
1,000 revisions, with 200 changes of each.`,
		Example: `  quorate revision list --one-line
  quorate revision list 12
  quorate revision list --at cern:atlas --by ann
  quorate revision list --before 100 --limit 5`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRevisions(c),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runHistory(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.limit, "limit", 0, "show at most this many, the newest (default: all)")
	flags.Uint64Var(&o.before, "before", 0, "only those before this revision")
	flags.Var(&o.at, "at", "only changes of this node itself")
	flags.StringVar(&o.actor, "by", "", "only what this user did, such as account/anna")
	flags.BoolVar(&o.oneLine, "one-line", false, "show each revision on one line, without its changes")
	return cmd
}

// revisionPage is how many revisions are asked for at once; the servers keep no more.
const revisionPage = 1000

func (o *historyOptions) runHistory(ctx context.Context, args []string) error {
	if o.limit < 0 {
		return cli.Usagef("--limit must not be negative")
	}
	if len(args) == 1 {
		var one revisionFlag
		if err := one.Set(args[0]); err != nil {
			return err
		}
		if o.before, o.limit = *one.value+1, 1; o.before == 1 {
			return cli.Usagef("revision 0 is the empty configuration of the beginning: it has no changes")
		}
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := o.fetchRevisions(ctx, quorate)
	if err != nil {
		return err
	}
	if found := answer.GetRevisions(); len(args) == 1 && (len(found) == 0 || found[0].GetRevision() != o.before-1) {
		return fmt.Errorf("there is no revision %s: quorate revision list --one-line lists those that are kept", args[0])
	}
	o.ReportAge(answer.GetRead())
	o.ReportFiltered(answer)
	return o.Print(answer, func(p *cli.Page) error {
		if o.oneLine || o.Output == cli.OutputCSV {
			return p.Table(revisionRows(answer.GetRevisions()))
		}
		for _, revision := range answer.GetRevisions() {
			drawRevision(p, revision)
		}
		return nil
	})
}

// fetchRevisions asks for the newest revisions, all of them without --limit or with --by.
func (o *historyOptions) fetchRevisions(
	ctx context.Context, quorate *client.Client,
) (*adminv1.ListRevisionsResponse, error) {
	limit := cmp.Or(o.limit, revisionPage)
	request := &adminv1.ListRevisionsRequest{
		Tree: o.at.Tree, Node: o.at.Node, PageSize: int32(min(limit, revisionPage)),
		BeforeRevision: o.before, Read: o.ReadOptions(),
	}
	if o.actor == "" {
		return quorate.Configuration.ListRevisions(ctx, request)
	}
	request.PageSize = revisionPage
	answer, err := quorate.Configuration.ListRevisions(ctx, request)
	if err != nil {
		return nil, err
	}
	answer.Revisions = slices.DeleteFunc(answer.GetRevisions(), func(r *quoratev1.Revision) bool {
		return r.GetActor() != o.actor
	})
	found := answer.GetRevisions()
	answer.Revisions = found[:min(len(found), limit)]
	return answer, nil
}

func revisionRows(revisions []*quoratev1.Revision) [][]string {
	rows := [][]string{{"REVISION", "AT", "ACTOR", "CHANGES", "REASON"}}
	for _, r := range revisions {
		rows = append(rows, []string{
			strconv.FormatUint(r.GetRevision(), 10), cli.FormatTime(r.GetAppliedAt()), cmp.Or(r.GetActor(), "-"),
			strconv.Itoa(int(max(r.GetChangeCount(), int32(len(r.GetChanges()))))), r.GetReason(),
		})
	}
	return rows
}

func completeRevisions(c *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c.Stale = true
		return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder,
			func(ctx context.Context, quorate *client.Client) ([]string, error) {
				answer, err := quorate.Configuration.ListRevisions(ctx, &adminv1.ListRevisionsRequest{Read: c.ReadOptions()})
				var names []string
				for _, r := range answer.GetRevisions() {
					name := strconv.FormatUint(r.GetRevision(), 10)
					names = append(names, cobra.CompletionWithDesc(name, cmp.Or(r.GetReason(), r.GetActor())))
				}
				return names, err
			})
	}
}

func drawRevision(p *cli.Page, r *quoratev1.Revision) {
	actor, reason, place := "", "", ""
	if r.GetActor() != "" {
		actor = "  " + r.GetActor()
	}
	if r.GetReason() != "" {
		reason = ": " + r.GetReason()
	}
	if r.GetTree() != "" {
		place = "  --at " + cli.PlaceOf(r.GetTree(), r.GetNode()).String()
	}
	p.Linef("revision %d  %s%s%s%s", r.GetRevision(), cli.FormatTime(r.GetAppliedAt()), place, actor, reason)
	if q := r.GetRequest(); q != nil {
		p.Linef("  request %d of %s, approved by %s", q.GetId(), q.GetAsker(), strings.Join(q.GetApprovers(), ", "))
	}
	for _, change := range r.GetChanges() {
		p.Differencef("  %s", changeText(change))
	}
	if more := int(r.GetChangeCount()) - len(r.GetChanges()); more > 0 {
		p.Linef("  and %d more", more)
	}
}
