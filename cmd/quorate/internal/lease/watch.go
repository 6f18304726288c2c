package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type watchOptions struct {
	*cli.Env
	at     cli.Place
	after  string
	ids    []string
	topics []string
	limit  int
}

func newWatchCmd(c *cli.Env) *cobra.Command {
	o := &watchOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Stream changes of allocations until interrupted",
		Long: `Stream changes of allocations: requests that wait, grants, revocations, and allocations that shrink or
end, one line per change, or with -o json one line of JSON. The first column is the position: after an interruption,
--after continues from it, at any server. The servers keep the last 65,536 changes.

With --topic thresholds it shows thresholds of limits that are crossed and cleared, and with
--topic configuration changes of the configuration with their actor and reason, where you may read it. With
--topic nodes it shows scheduled limits that are made, begin, end soon, have ended or skip windows, and nodes that are
drained.`,
		Example: `  quorate watch --at ci
  quorate watch --at cern:atlas --topic configuration,thresholds
  quorate watch --after 4711.2 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runWatch(cmd.Context()) },
	}
	flags := cmd.Flags()
	cli.PlaceVar(flags, &o.at, "only what happens")
	flags.StringSliceVar(&o.topics, "topic", nil, "watch `TOPIC`: "+cli.JoinNames(watchTopics)+" (default: allocations)")
	flags.StringArrayVar(&o.ids, "id", nil, "only the allocation of this `ID`; may be repeated")
	flags.StringVar(&o.after, "after", "", "begin after this `POSITION`, or after the index of an answer (default: now)")
	flags.IntVar(&o.limit, "limit", 0, "stop after this many changes (default: never)")
	return cmd
}

// watchTopics are the values of --topic.
var watchTopics = map[string]quoratev1.WatchTopic{
	"allocations":   quoratev1.WatchTopic_WATCH_TOPIC_ALLOCATIONS,
	"thresholds":    quoratev1.WatchTopic_WATCH_TOPIC_THRESHOLDS,
	"configuration": quoratev1.WatchTopic_WATCH_TOPIC_CONFIGURATION,
	"nodes":         quoratev1.WatchTopic_WATCH_TOPIC_NODES,
}

// errEnough ends a watch after --limit changes.
var errEnough = errors.New("enough")

func (o *watchOptions) runWatch(ctx context.Context) error {
	request := &quoratev1.WatchEventsRequest{Tree: o.at.Tree, Node: o.at.Node, Namespace: o.Namespace}
	for _, id := range o.ids {
		request.Allocations = append(request.Allocations, &quoratev1.AllocationRef{Id: id})
	}
	switch {
	case o.limit < 0:
		return cli.Usagef("--limit must not be negative")
	case !slices.Contains([]string{cli.OutputTable, cli.OutputJSON, cli.OutputJSONL}, o.Output) || o.JQ != "":
		return cli.Usagef("watch prints one line per change: leave out -o, or use -o json")
	}
	for _, name := range o.topics {
		topic, known := watchTopics[name]
		if !known {
			return cli.Usagef("there is no topic %q; there are: %s", name, cli.JoinNames(watchTopics))
		}
		request.Topics = append(request.Topics, topic)
	}
	if err := parsePosition(o.after, request); err != nil {
		return err
	}
	o.Patient = true
	quorate, limited, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	o.LearnUnitsForTable(limited, quorate)
	seen := 0
	err = quorate.Watch(ctx, request, func(m *quoratev1.WatchEventsResponse) error {
		if err := o.printEvents(m); err != nil {
			return err
		}
		if seen++; seen == o.limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) || ctx.Err() != nil && !errors.Is(err, client.ErrUnavailable) {
		return nil // --limit is reached, or the command was interrupted
	}
	return err
}

// parsePosition parses INDEX or INDEX.NUMBER; an empty text means now.
func parsePosition(text string, request *quoratev1.WatchEventsRequest) error {
	if text == "" {
		return nil
	}
	index, number, numbered := strings.Cut(text, ".")
	var err error
	if request.AfterIndex, err = strconv.ParseUint(index, 10, 64); err != nil || request.GetAfterIndex() == 0 {
		return cli.Usagef("--after %q is not a position: use one from the first column, such as 4711.2, or the index "+
			"of an answer", text)
	}
	if numbered {
		part, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return cli.Usagef("--after %q is not a position: use one from the first column, such as 4711.2", text)
		}
		request.AfterNumber = uint32(part)
	}
	return nil
}

func (o *watchOptions) printEvents(m *quoratev1.WatchEventsResponse) error {
	if !o.IsTable() {
		text, err := cli.JSONLine(m)
		if err != nil {
			return err
		}
		return o.Write(text)
	}
	what, text := o.eventText(m)
	line := fmt.Sprintf("%-8s  %-9s  %s", fmt.Sprintf("%d.%d", m.GetIndex(), m.GetNumber()), what, text)
	return o.Write([]byte(cli.Printable(line) + "\n"))
}

func (o *watchOptions) eventText(m *quoratev1.WatchEventsResponse) (what, text string) {
	if c := m.GetCrossing(); c != nil {
		return map[bool]string{true: "cleared", false: "crossed"}[c.GetCleared()], o.Units.CrossingText(c)
	}
	if r := m.GetRevision(); r != nil {
		return "revision", revisionText(r)
	}
	if e := m.GetEvent(); e != nil {
		return eventWord(e), o.nodeEventText(e)
	}
	a := m.GetChange().GetAllocation()
	words := []string{o.IDText(a), o.Units.ClaimsText(a)}
	for _, more := range []string{o.changeText(m), cli.WaitingText(a), o.Units.ResizeText(a)} {
		if more != "" {
			words = append(words, "("+more+")")
		}
	}
	return strings.ToLower(strings.TrimPrefix(m.GetChange().GetKind().String(), "ALLOCATION_CHANGE_KIND_")),
		strings.Join(words, "  ")
}

func eventWord(e *quoratev1.Event) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(e.GetKind().String(), "EVENT_KIND_"), "_", "-"))
}

func (o *watchOptions) nodeEventText(e *quoratev1.Event) string {
	if e.GetScheduled() == nil {
		return cli.PlaceOf(e.GetTree(), e.GetNode()).String()
	}
	text := e.GetId() + "  " + o.Units.ScheduledEventText(e.GetScheduled())
	if by := cli.EventCauseText(e); by != "" {
		text += " (by " + by + ")"
	}
	return text
}

// revisionText names the first changes of a revision.
func revisionText(r *quoratev1.Revision) string {
	const shown = 5
	text := fmt.Sprintf("%d by %s", r.GetRevision(), cmp.Or(r.GetActor(), "an unnamed actor"))
	if r.GetReason() != "" {
		text += ": " + r.GetReason()
	}
	for i, c := range r.GetChanges() {
		if i == shown {
			return text + fmt.Sprintf("; and %d more", int(r.GetChangeCount())-shown)
		}
		text += fmt.Sprintf("; %s %s: %s -> %s", cli.PlaceOf(c.GetTree(), c.GetNode()), c.GetField(),
			cmp.Or(c.GetBefore(), "none"), cmp.Or(c.GetAfter(), "none"))
	}
	return text
}

func (o *watchOptions) changeText(m *quoratev1.WatchEventsResponse) string {
	a := m.GetChange().GetAllocation()
	switch m.GetChange().GetKind() {
	case quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_ENDED:
		if text := o.Units.EndText(a); text != "" {
			return text
		}
		return cli.StateText(a)
	case quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_REVOKED:
		return o.Units.LeaseText(a, m.GetLedgerTimeMs())
	case quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_UNSPECIFIED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_WAITING,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_CONFIRMED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESTORED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_SHRUNK,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZE_WAITING,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZE_DROPPED:
	}
	return ""
}
