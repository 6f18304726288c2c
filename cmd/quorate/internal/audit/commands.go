// Package audit has the commands that show and verify audit records.
package audit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// AddCommands adds the commands about audit records.
func AddCommands(to *cli.Nouns) { to.Add("audit", newListCmd, newVerifyCmd) }

type listOptions struct {
	*cli.Env
	user, action, since string
	at                  cli.Place
	calls, denied       bool
	limit               int
}

func newListCmd(c *cli.Env) *cobra.Command {
	o := &listOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list [FILE...]",
		Short: "Show who changed what, oldest first",
		Long: `Show who changed what, oldest first: the last 10,000 changes of the configuration and of access, which are
the same on every server. --calls shows instead what the asked server has recorded of its calls since it started: those
that were refused, and those that no change tells of, such as backups and changes of members. The verb audit.read is
needed.

With files (audit-file in the configuration of a server, and FILE.1 and so on) no server is asked. They may be of
several servers: records are shown in the order of time, and what all servers have recorded only once.

Records never have tokens, nor user data of leases.`,
		Example: `  quorate audit list --at cern:atlas --since 24h
  quorate audit list --by account/anna -o json
  quorate audit list --denied
  quorate audit list /var/log/quorate/audit.log* --action SetLimits
  quorate audit verify /var/log/quorate/audit.log*`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error { return o.run(cmd.Context(), files) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.user, "by", "", "only what this user did, such as account/anna")
	flags.StringVar(&o.action, "action", "", "only this command or method, such as SetLimits or CreateToken")
	cli.PlaceVar(flags, &o.at, "only changes")
	flags.StringVar(&o.since, "since", "", "only records since this time: 2026-12-24T18:00:00Z, or a span such as 24h")
	flags.BoolVar(&o.calls, "calls", false, "show records of calls of the asked server")
	flags.BoolVar(&o.denied, "denied", false, "only calls that were refused (implies --calls)")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many, the newest (default: all)")
	return cmd
}

func (o *listOptions) request() (*adminv1.ListRecordsRequest, error) {
	if o.limit < 0 {
		return nil, cli.Usagef("--limit must not be negative")
	}
	r := &adminv1.ListRecordsRequest{
		Tree: o.at.Tree, Node: o.at.Node, User: o.user, Action: o.action, Refused: o.denied,
		Source: adminv1.AuditSource_AUDIT_SOURCE_LEDGER, PageSize: 1000, Read: o.ReadOptions(),
	}
	if o.calls || o.denied {
		r.Source = adminv1.AuditSource_AUDIT_SOURCE_SERVER
	}
	if o.since != "" {
		at, err := parseSince(o.since, time.Now())
		if err != nil {
			return nil, err
		}
		r.BeginsAt = timestamppb.New(at)
	}
	return r, nil
}

// parseSince reads a time of RFC 3339, or a span that ends now.
func parseSince(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	span, err := cli.ParseSpan("--since", text)
	if err != nil {
		return time.Time{}, cli.Usagef("--since: %q is neither a time such as 2026-12-24T18:00:00Z nor a span such as 24h",
			text)
	}
	return now.Add(-span), nil
}

func (o *listOptions) run(ctx context.Context, files []string) error {
	request, err := o.request()
	if err != nil {
		return err
	}
	all := &adminv1.ListRecordsResponse{}
	if len(files) > 0 {
		err = o.readFiles(files, request, all)
	} else {
		err = o.askServer(ctx, request, all)
	}
	if err != nil {
		return err
	}
	return o.Print(all, func(p *cli.Page) error { return p.Table(recordRows(all.GetRecords())) })
}

func (o *listOptions) keepNewest(all *adminv1.ListRecordsResponse) {
	if list := all.GetRecords(); o.limit > 0 && len(list) > o.limit {
		all.Records = list[len(list)-o.limit:]
	}
}

func (o *listOptions) askServer(
	ctx context.Context, request *adminv1.ListRecordsRequest, all *adminv1.ListRecordsResponse,
) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := joinPages(ctx, quorate, request, all, o.keepNewest); err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	return nil
}

func joinPages(
	ctx context.Context, quorate *client.Client, request *adminv1.ListRecordsRequest, all *adminv1.ListRecordsResponse,
	added func(*adminv1.ListRecordsResponse),
) error {
	for page, err := range client.Pages(ctx, quorate.Audit.ListRecords, request) {
		if err != nil {
			return err
		}
		all.Records, all.Read = append(all.Records, page.GetRecords()...), page.GetRead()
		added(all)
	}
	return nil
}

func recordRows(list []*adminv1.AuditRecord) [][]string {
	rows := [][]string{{"NUMBER", "AT", "WHO", "ACTION", "OUTCOME", "WHAT", "REASON"}}
	for _, r := range list {
		number := ""
		if r.GetNumber() > 0 {
			number = strconv.FormatUint(r.GetNumber(), 10)
		}
		rows = append(rows, []string{
			number, cli.FormatTime(r.GetRecordedAt()), actorText(r), r.GetAction(), r.GetOutcome(), whatText(r), r.GetReason(),
		})
	}
	return rows
}

func actorText(r *adminv1.AuditRecord) string {
	text := r.GetActor().GetUser()
	if text == "" {
		text = r.GetActor().GetKind()
	}
	if text == "" {
		text = "-"
	}
	if r.GetAddress() != "" {
		text += " from " + r.GetAddress()
	}
	return text
}

// shownChanges is how many changes of a record the table has.
const shownChanges = 3

func whatText(r *adminv1.AuditRecord) string {
	var parts []string
	for _, c := range r.GetChanges()[:min(len(r.GetChanges()), shownChanges)] {
		part := c.GetField()
		if c.GetTree() != "" {
			part = cli.PlaceOf(c.GetTree(), c.GetNode()).String() + " " + part
		}
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", part, orNone(c.GetBefore()), orNone(c.GetAfter())))
	}
	if more := r.GetChangeCount() - uint64(len(parts)); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if r.GetLast() > 0 {
		parts = append(parts, fmt.Sprintf("records %d to %d", r.GetFirst(), r.GetLast()))
	}
	if r.GetCount() > 0 {
		parts = append(parts, fmt.Sprintf("%d more calls", r.GetCount()))
	}
	if r.GetDetail() != "" {
		parts = append(parts, r.GetDetail())
	}
	return strings.Join(parts, "; ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
