package lease

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type queueOptions struct {
	*cli.Env
	at                  cli.Place
	resource            string
	limit               int
	owner               string
	certainBy, blockers bool
	follow              cli.Following
}

func newQueueListCmd(c *cli.Env) *cobra.Command {
	o := &queueOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List waiting requests in queue order, with what blocks each",
		Long: `List the waiting requests in the order in which they are tried: by priority, then by arrival. The
position of a request counts the requests that wait for the same first blocker. BLOCKED BY lists every limit that
blocks a request, at every level, and requests that come before it.

With --blockers it also names, for each of these limits, the largest allocations that hold what is missing, and the
requests ahead, as far as you may see them: at most 20 of each.

With --certain-by it also shows when each request is granted at the latest, if nothing else changes: allocations that
declared an end (allocate --for) end then, all others stay held, and no new requests arrive. A "-" says that something
in the way has no known end. The server simulates this in a copy of the ledger, which is expensive, so ask seldom. In a
guarded cluster it needs the right to read holders on the whole cluster.`,
		Example: `  quorate queue list
  quorate queue list --at ci:tenants/web
  quorate queue list --at ci --resource aws-account -o json
  quorate queue list --at ci --watch
  quorate queue list --at ci --blockers
  quorate queue list --certain-by`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runQueue(cmd.Context()) },
	}
	flags := cmd.Flags()
	cli.PlaceVar(flags, &o.at, "only requests with a claim")
	flags.StringVar(&o.resource, "resource", "", "only those that ask for this resource of the tree")
	flags.StringVar(&o.owner, "owner", "", "only those that this identity has made")
	flags.BoolVar(&o.blockers, "blockers", false, "name who is in the way of each request")
	flags.BoolVar(&o.certainBy, "certain-by", false, "predict when each request is granted at the latest")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
	o.follow.AddFlag(cmd)
	return cmd
}

func (o *queueOptions) runQueue(ctx context.Context) error {
	if o.resource != "" && o.at.Tree == "" {
		return cli.Usagef("--resource needs --at")
	}
	if o.limit < 0 {
		return cli.Usagef("--limit must not be negative")
	}
	if o.follow.On && (o.certainBy || o.blockers) {
		return cli.Usagef("--certain-by and --blockers are expensive for the servers and cannot be combined with --watch")
	}
	// What is in the way is shown with numbers, so it follows the usage, perhaps that of another tree.
	o.follow.Concerns = func(m *quoratev1.WatchChangesResponse) bool { return len(m.GetTrees()) > 0 }
	return o.RunOrFollow(ctx, o.follow, func(ctx context.Context, quorate *client.Client) error {
		return o.showQueue(ctx, quorate, o.at)
	})
}

func (o *queueOptions) showQueue(ctx context.Context, quorate *client.Client, at cli.Place) error {
	all, err := o.fetchQueue(ctx, quorate, at)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.ReportFiltered(all)
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(all, func(p *cli.Page) error { return o.drawQueue(p, all) })
}

// fetchQueue joins pages into one answer, up to --limit.
func (o *queueOptions) fetchQueue(
	ctx context.Context, quorate *client.Client, at cli.Place,
) (*quoratev1.ListWaitingResponse, error) {
	query := &quoratev1.ListWaitingRequest{
		Tree: at.Tree, Node: at.Node, Resource: o.resource, Read: o.ReadOptions(),
		CertainBy: o.certainBy, Owner: o.owner, Namespace: o.Namespace, NameBlockers: o.blockers,
	}
	return cli.FirstPages(ctx, quorate.Allocations.ListWaiting, query, o.limit,
		func(page *quoratev1.ListWaitingResponse) int { return len(page.GetRequests()) })
}

func (o *queueOptions) drawQueue(p *cli.Page, all *quoratev1.ListWaitingResponse) error {
	u, requests := o.Units, all.GetRequests()
	if len(requests) == 0 {
		p.Linef("no request is waiting")
		return nil
	}
	head := []string{"ID", "PRIORITY", "SINCE", "ASKS FOR", "POSITION"}
	if o.certainBy {
		head = append(head, "CERTAIN BY")
	}
	hasJobs := slices.ContainsFunc(requests, func(r *quoratev1.WaitingRequest) bool {
		return cli.JobText(r.GetAllocation().GetLabels()) != ""
	})
	if hasJobs {
		head = append(head, "JOB")
	}
	rows := [][]string{append(head, "BLOCKED BY")}
	for _, r := range requests {
		a := r.GetAllocation()
		waiting, asks := a.GetWaiting(), u.ClaimsText(a)
		if resize := a.GetResize(); resize != nil {
			waiting, asks = resize.GetWaiting(), u.ResizeClaims(resize)
		}
		row := []string{
			o.IDText(a), strconv.FormatInt(a.GetPriority(), 10),
			cli.FormatTime(waiting.GetArrivedAt()), asks,
			cli.PositionText(waiting),
		}
		if o.certainBy {
			row = append(row, cli.CertainText(waiting.GetCertainByLedgerMs(), all.GetRead().GetLedgerTimeMs()))
		}
		if hasJobs {
			row = append(row, cli.JobText(a.GetLabels()))
		}
		row = append(row, "")
		for _, text := range blockedBy(u, r.GetDecision(), all.GetRead().GetLedgerTimeMs()) {
			row[len(row)-1] = text
			rows = append(rows, row)
			row = make([]string, len(row))
		}
	}
	return p.Table(rows)
}

// blockedBy are the limits in the way of a request, each with who is there, if that was asked; one empty text if there
// are none.
func blockedBy(u cli.Units, d *quoratev1.Decision, nowMs int64) []string {
	var texts []string
	for _, v := range d.GetViolations() {
		texts = append(texts, u.ViolationText(v))
		for _, level := range d.GetHolders() {
			if !isLevelOf(level, v) {
				continue
			}
			for _, text := range u.BlockerTexts(level, level.GetAllocations(), nowMs) {
				texts = append(texts, "  held by "+text)
			}
			for _, text := range u.BlockerTexts(level, level.GetBlockers(), nowMs) {
				texts = append(texts, "  ahead "+text)
			}
		}
	}
	if texts == nil {
		return []string{""}
	}
	return texts
}

// isLevelOf is true for the entry of a violation.
func isLevelOf(l *quoratev1.LevelHolders, v *quoratev1.Violation) bool {
	return l.GetTree() == v.GetTree() && l.GetNode() == v.GetNode() && l.GetResource() == v.GetResource() &&
		l.GetKind() == v.GetKind() && l.GetHolderKind() == v.GetHolderKind() && l.GetHolder() == v.GetHolder() &&
		l.GetItem() == v.GetItem() && l.GetAlternative() == v.GetAlternative()
}
