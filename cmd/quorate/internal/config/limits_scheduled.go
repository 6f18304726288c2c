package config

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// scheduleFlags are those that make "limit set" schedule limits.
type scheduleFlags struct{ begin, until, every, id string }

func (o *limitsSetOptions) runSchedule(ctx context.Context, at cli.Place) error {
	request, err := o.scheduleRequest(at)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := o.LearnUnits(ctx, quorate); err != nil {
		return err
	}
	if request.Adjustments, err = parseAdjustments(o.Units, at, o.limits); err != nil {
		return err
	}
	answer, err := quorate.Trees.ScheduleLimits(ctx, request)
	if err != nil {
		return err
	}
	word := "scheduled"
	switch {
	case o.dryRun:
		word = "would be scheduled"
	case answer.GetWrite().GetRepetition():
		word = "is scheduled already"
	}
	return o.Print(answer, func(p *cli.Page) error {
		p.Linef("%s: %s", word, scheduledText(o.Units, answer.GetLimit()))
		return nil
	})
}

func (o *limitsSetOptions) scheduleRequest(at cli.Place) (*quoratev1.ScheduleLimitsRequest, error) {
	switch f := o.schedule; {
	case o.user != "" || o.group != "" || o.applications != "":
		return nil, cli.Usagef("--until schedules limits of the node: leave out --user, --group and --applications")
	case o.expected.value != nil:
		return nil, cli.Usagef("--expected-revision is about the configuration, which --until does not change")
	case f.until == "" && f.every == "":
		return nil, cli.Usagef("--until is missing: say when the scheduled limits end, such as 2026-11-30T08:00:00Z, or " +
			"with --every when they recur")
	case len(o.limits) == 0:
		return nil, cli.Usagef("name at least one limit: RESOURCE=LIMIT, RESOURCE=+N, RESOURCE=-N or RESOURCE=cap:LIMIT")
	case f.id == "":
		o.schedule.id = strings.ToLower(rand.Text()[:10])
	}
	request := &quoratev1.ScheduleLimitsRequest{
		Id: o.schedule.id, Tree: at.Tree, Node: at.Node, Actor: o.actor, Reason: o.reason,
		DryRun: o.dryRun, Every: o.schedule.every,
	}
	var err error
	if request.EndsAt, err = parseTime("--until", o.schedule.until); err == nil {
		request.BeginsAt, err = parseTime("--begin", o.schedule.begin)
	}
	return request, err
}

// parseTime reads a time with a time zone, or in that of this machine; nil for an empty text.
func parseTime(flag, text string) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return timestamppb.New(at), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return timestamppb.New(at), nil
		}
	}
	return nil, cli.Usagef("%s: %q is not a time: write 2026-11-30T08:00:00Z, or 2026-11-30T08:00 in the time zone of "+
		"this machine", flag, text)
}

// capWord stands before the amount of a cap.
const capWord = "cap:"

// parseAdjustments reads pairs such as cores=200, cores=+50 and cores=cap:10.
func parseAdjustments(
	units cli.Units, at cli.Place, pairs []string,
) (map[string]*quoratev1.LimitAdjustment, error) {
	list := map[string]*quoratev1.LimitAdjustment{}
	for _, text := range pairs {
		resource, value, err := cli.SplitPair(text)
		if err != nil {
			return nil, err
		}
		if list[resource] != nil {
			return nil, cli.Usagef("the limit of %q is given twice", resource)
		}
		unit, err := units.UnitOf(at.Tree, resource)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		if list[resource], err = parseAdjustment(value, unit); err != nil {
			return nil, cli.Usagef("scheduled limit of %q: %v", resource, err)
		}
	}
	return list, nil
}

func parseAdjustment(text string, unit quoratev1.Unit) (*quoratev1.LimitAdjustment, error) {
	number := strings.TrimPrefix(strings.TrimLeft(text, "+-"), capWord)
	amount, err := quantity.Parse(number, unit)
	if err != nil {
		return nil, fmt.Errorf("%w; write an amount, +AMOUNT, -AMOUNT or %sAMOUNT", err, capWord)
	}
	switch strings.TrimSuffix(text, number) {
	case "":
		return &quoratev1.LimitAdjustment{Value: &quoratev1.LimitAdjustment_Set{Set: amount}}, nil
	case "+":
		return &quoratev1.LimitAdjustment{Value: &quoratev1.LimitAdjustment_Add{Add: amount}}, nil
	case "-":
		return &quoratev1.LimitAdjustment{Value: &quoratev1.LimitAdjustment_Add{Add: -amount}}, nil
	case capWord:
		return &quoratev1.LimitAdjustment{Value: &quoratev1.LimitAdjustment_Cap{Cap: amount}}, nil
	}
	return nil, fmt.Errorf("%q is not an amount, +AMOUNT, -AMOUNT or %sAMOUNT", text, capWord)
}

func newScheduleListCmd(c *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [TREE[:node/path]]",
		Short: "Show scheduled limits: those in force and those to come",
		Long: `Show scheduled limits that are in force or to come, at a node and below it, in the order in which they were
made. "quorate limit set" with --until or --every schedules limits. Those of nodes are shown whose configuration you
may read.

Of a limit that recurs, FROM and UNTIL are those of its present or next window. Windows that a policy did not allow when
they were added are listed below: the limit will not be in force in them. With -o json all known windows are shown.

Times are civil time, on which the members of the cluster agree.`,
		Example: `  quorate schedule list
  quorate schedule list cern:atlas -o json
  quorate schedule delete cms-help --reason "not needed any more"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runLimitsScheduled(cmd.Context(), c, args)
		},
	}
	return cmd
}

func runLimitsScheduled(ctx context.Context, c *cli.Env, args []string) error {
	request := &quoratev1.ListScheduledLimitsRequest{Read: c.ReadOptions()}
	if len(args) == 1 {
		at, err := cli.ParsePlace(args[0])
		if err != nil {
			return err
		}
		request.Tree, request.Node = at.Tree, at.Node
	}
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ListScheduledLimits(ctx, request)
	if err != nil {
		return err
	}
	c.ReportAge(answer.GetRead())
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error {
		if err := p.Table(scheduledRows(c.Units, answer.GetLimits())); err != nil {
			return err
		}
		for _, s := range answer.GetLimits() {
			for _, line := range cli.SkippedText(s) {
				p.Linef("%s is %s", s.GetId(), line)
			}
		}
		return nil
	})
}

func scheduledRows(u cli.Units, list []*quoratev1.ScheduledLimit) [][]string {
	rows := [][]string{{"ID", "NODE", "LIMITS", "FROM", "UNTIL", "EVERY", "IN FORCE", "BY", "REASON"}}
	for _, s := range list {
		rows = append(rows, []string{
			s.GetId(), cli.PlaceOf(s.GetTree(), s.GetNode()).String(), u.AdjustmentsText(s),
			cli.FormatTime(s.GetBeginsAt()), cli.FormatTime(s.GetEndsAt()), s.GetEvery(),
			map[bool]string{true: "yes"}[s.GetInForce()], s.GetActor(), s.GetReason(),
		})
	}
	return rows
}

func newScheduleDeleteCmd(c *cli.Env) *cobra.Command {
	request := &quoratev1.CancelScheduledLimitRequest{}
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Cancel a scheduled limit, which ends at once if it is in force",
		Long: `Cancel a scheduled limit. If it is in force it ends at once, and the configured limit is in force again. It
is refused if a policy forbids the limits that are left. The right to set the limits of the node is needed.`,
		Example: `  quorate schedule delete cms-help --reason "not needed any more"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Id = args[0]
			return runLimitsCancel(cmd.Context(), c, request)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&request.DryRun, "dry-run", false, "only report whether it would be refused")
	flags.StringVar(&request.Actor, "actor", os.Getenv("USER"), "who makes the change, for the history")
	cli.AddReasonFlag(flags, &request.Reason)
	return cmd
}

func runLimitsCancel(ctx context.Context, c *cli.Env, request *quoratev1.CancelScheduledLimitRequest) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.CancelScheduledLimit(ctx, request)
	if err != nil {
		return err
	}
	c.LearnUnitsForTable(ctx, quorate)
	word := map[bool]string{true: "would be cancelled", false: "cancelled"}[request.GetDryRun()]
	return c.Print(answer, func(p *cli.Page) error {
		p.Linef("%s: %s", word, scheduledText(c.Units, answer.GetLimit()))
		return nil
	})
}

func scheduledText(u cli.Units, s *quoratev1.ScheduledLimit) string {
	return fmt.Sprintf("%s  %s  %s", s.GetId(), cli.PlaceOf(s.GetTree(), s.GetNode()), u.ScheduledText(s))
}

// scheduledAt are the scheduled limits of a node itself. A server of an earlier version has none.
func scheduledAt(
	ctx context.Context, quorate *client.Client, at cli.Place, read *quoratev1.ReadOptions,
) ([]*quoratev1.ScheduledLimit, error) {
	answer, err := quorate.Trees.ListScheduledLimits(ctx, &quoratev1.ListScheduledLimitsRequest{
		Tree: at.Tree, Node: at.Node, Read: read,
	})
	if connect.CodeOf(err) == connect.CodeUnimplemented {
		return nil, nil
	}
	return slices.DeleteFunc(answer.GetLimits(),
		func(s *quoratev1.ScheduledLimit) bool { return s.GetNode() != at.Node }), err
}
