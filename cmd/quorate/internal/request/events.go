package request

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// eventKinds are the values of --kind.
var eventKinds = map[string]quoratev1.EventKind{
	"denied":    quoratev1.EventKind_EVENT_KIND_DENIED,
	"preempted": quoratev1.EventKind_EVENT_KIND_PREEMPTED,
	"expired":   quoratev1.EventKind_EVENT_KIND_EXPIRED,
	"restored":  quoratev1.EventKind_EVENT_KIND_RESTORED,
	"revoked":   quoratev1.EventKind_EVENT_KIND_REVOKED,
	"dropped":   quoratev1.EventKind_EVENT_KIND_DROPPED,
	"crossed":   quoratev1.EventKind_EVENT_KIND_CROSSED,
	"cleared":   quoratev1.EventKind_EVENT_KIND_CLEARED,
	"drained":   quoratev1.EventKind_EVENT_KIND_DRAINED,

	"limit-scheduled": quoratev1.EventKind_EVENT_KIND_LIMIT_SCHEDULED,
	"limit-started":   quoratev1.EventKind_EVENT_KIND_LIMIT_STARTED,
	"limit-ending":    quoratev1.EventKind_EVENT_KIND_LIMIT_ENDING,
	"limit-ended":     quoratev1.EventKind_EVENT_KIND_LIMIT_ENDED,
	"limit-skipped":   quoratev1.EventKind_EVENT_KIND_LIMIT_SKIPPED,

	"declared-end": quoratev1.EventKind_EVENT_KIND_DECLARED_END,
	"webhook-dead": quoratev1.EventKind_EVENT_KIND_WEBHOOK_DEAD,
}

type eventsOptions struct {
	*cli.Env
	kind, id string
	at       cli.Place
	after    uint64
	limit    int
}

func newEventListCmd(c *cli.Env) *cobra.Command {
	o := &eventsOptions{Env: c}
	kinds := slices.Sorted(maps.Keys(eventKinds))
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List recent events of requests and allocations, oldest first",
		Long: `List recent events, oldest first: requests that were denied, or dropped from the queue because their
time was over; allocations that were preempted; leases that were revoked; reservations and leases that expired,
and allocations whose declared time (--for) was over;
allocations that were restored because the reservation that had preempted them ended; thresholds of limits (those in
a manifest) that were crossed, or cleared again; nodes that were drained; limits that were scheduled, have started, end
soon or have ended; and webhooks that are dead. The cluster keeps the last 10,000 events. "quorate explain ID" shows
more about one of a request or an allocation, and "quorate watch" what else happens.`,
		Example: `  quorate event list --kind denied
  quorate event list --id job-7 -o json
  quorate event list --kind crossed --at cern:atlas
  quorate event list --after-event 4711`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runEvents(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kind, "kind", "", "only events of this kind: "+strings.Join(kinds, ", "))
	flags.StringVar(&o.id, "id", "", "only those of this allocation, request or scheduled limit")
	flags.Var(&o.at, "at", "only those at this node or below it")
	flags.Uint64Var(&o.after, "after-event", 0, "only those after this number")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
	cli.CompleteFlag(cmd, "kind", kinds...)
	return cmd
}

func (o *eventsOptions) runEvents(ctx context.Context) error {
	kind, known := eventKinds[o.kind]
	if o.kind != "" && !known {
		return cli.Usagef("there is no kind of event %q; there are: %s", o.kind, cli.JoinNames(eventKinds))
	}
	if o.limit < 0 {
		return cli.Usagef("--limit must not be negative")
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetchEvents(ctx, quorate, kind)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.ReportFiltered(all)
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(all, func(p *cli.Page) error { return p.Table(eventRows(o.Units, all.GetEvents())) })
}

func (o *eventsOptions) fetchEvents(
	ctx context.Context, quorate *client.Client, kind quoratev1.EventKind,
) (*quoratev1.ListEventsResponse, error) {
	request := &quoratev1.ListEventsRequest{
		AfterEvent: o.after, Kind: kind, Id: o.id, Namespace: o.Namespace,
		Read: o.ReadOptions(), Tree: o.at.Tree, Node: o.at.Node,
	}
	return cli.FirstPages(ctx, quorate.Events.ListEvents, request, o.limit,
		func(page *quoratev1.ListEventsResponse) int { return len(page.GetEvents()) })
}

func eventObject(e *quoratev1.Event) string {
	if e.GetTree() != "" {
		return cli.PlaceOf(e.GetTree(), e.GetNode()).String()
	}
	return cli.NameText(e, cli.DefaultNamespace)
}

func eventRows(u cli.Units, events []*quoratev1.Event) [][]string {
	rows := [][]string{{"NUMBER", "AT", "WHAT", "ID", "BY", "WHY"}}
	for _, e := range events {
		var why []string
		for _, v := range e.GetDecision().GetViolations() {
			why = append(why, u.ViolationText(v))
		}
		if c := e.GetCrossing(); c != nil {
			why = append(why, u.CrossingText(c))
		}
		if s := e.GetScheduled(); s != nil {
			why = append(why, u.ScheduledEventText(s))
		}
		if r := e.GetReason(); r != nil {
			why = append(why, u.ReasonText(r))
		}
		what := strings.ToLower(strings.TrimPrefix(e.GetKind().String(), "EVENT_KIND_"))
		what = strings.ReplaceAll(what, "_", "-")
		rows = append(rows, []string{
			strconv.FormatUint(e.GetNumber(), 10), cli.FormatTime(e.GetHappenedAt()), what, eventObject(e),
			cli.EventCauseText(e),
			strings.Join(why,
				"; "),
		})
	}
	return rows
}
