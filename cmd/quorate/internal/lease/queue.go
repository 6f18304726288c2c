package lease

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type queueOptions struct {
	*cli.Env
	tree, node, resource string
	limit                int
	certainBy            bool
}

func newQueueCmd(c *cli.Env) *cobra.Command {
	o := &queueOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List waiting requests in queue order, with what blocks each",
		Long: `List the waiting requests in the order in which they are tried: by priority, then by arrival. The
position of a request counts the requests that wait for the same first blocker. BLOCKED BY lists every limit that
blocks a request, at every level, and requests that come before it.

With --certain-by it also shows when each request is granted at the latest, if nothing else changes: allocations that
declared an end (allocate --for) end then, all others stay held, and no new requests arrive. A "-" says that something
in the way has no known end. The server simulates this in a copy of the ledger, which is expensive, so ask seldom. In a
guarded cluster it needs the right to read holders on the whole cluster.`,
		Example: `  quorate queue
  quorate queue --tree ci --node tenants/web
  quorate queue --tree ci --resource aws-account -o json
  quorate queue --certain-by`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runQueue(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.tree, "tree", "", "only requests with a claim in this tree")
	flags.StringVar(&o.node, "node", "", "only those with a claim at this node of the tree or below it")
	flags.StringVar(&o.resource, "resource", "", "only those that ask for this resource of the tree")
	flags.BoolVar(&o.certainBy, "certain-by", false, "foretell when each request is granted at the latest")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
	return cmd
}

func (o *queueOptions) runQueue(ctx context.Context) error {
	if (o.node != "" || o.resource != "") && o.tree == "" {
		return cli.Usagef("--node and --resource need --tree")
	}
	if o.limit < 0 {
		return cli.Usagef("--limit must not be negative")
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetchQueue(ctx, quorate)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.ReportFiltered(all)
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(all, func(p *cli.Page) error { return o.drawQueue(p, all) })
}

// fetchQueue joins pages into one answer, up to --limit.
func (o *queueOptions) fetchQueue(ctx context.Context, quorate *client.Client) (*quoratev1.ListWaitingResponse, error) {
	const pageSize = 1000
	all := &quoratev1.ListWaitingResponse{}
	query := &quoratev1.ListWaitingRequest{
		Tree: o.tree, Node: o.node, Resource: o.resource, PageSize: pageSize, Read: o.ReadOptions(),
		CertainBy: o.certainBy,
	}
	for {
		if o.limit > 0 {
			query.PageSize = int32(min(o.limit-len(all.GetRequests()), pageSize))
		}
		page, err := quorate.Allocations.ListWaiting(ctx, query)
		if err != nil {
			return nil, err
		}
		all.Requests = append(all.Requests, page.GetRequests()...)
		all.Read, all.NextPageToken, all.Filtered = page.GetRead(), page.GetNextPageToken(), page.GetFiltered()
		query.PageToken = page.GetNextPageToken()
		if query.GetPageToken() == "" || len(all.GetRequests()) == o.limit {
			return all, nil
		}
	}
}

// drawQueue writes the requests, with one blocker per row.
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
	rows := [][]string{append(head, "BLOCKED BY")}
	for _, r := range requests {
		a := r.GetAllocation()
		waiting, asks := a.GetWaiting(), u.ClaimsText(a)
		if resize := a.GetResize(); resize != nil {
			waiting, asks = resize.GetWaiting(), u.ResizeClaims(resize)
		}
		row := []string{
			a.GetId(), strconv.FormatInt(a.GetPriority(), 10), cli.FormatTime(waiting.GetSince()), asks,
			cli.PositionText(waiting),
		}
		if o.certainBy {
			row = append(row, cli.CertainText(waiting.GetCertainByLedgerMs(), all.GetRead().GetLedgerTimeMs()))
		}
		row = append(row, "")
		for i, v := range r.GetDecision().GetViolations() {
			if i > 0 {
				row = make([]string, len(row))
			}
			row[len(row)-1] = u.ViolationText(v)
			rows = append(rows, row)
		}
		if len(r.GetDecision().GetViolations()) == 0 {
			rows = append(rows, row)
		}
	}
	return p.Table(rows)
}
