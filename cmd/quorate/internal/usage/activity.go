package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type activityOptions struct {
	*cli.Env
	at       []cli.Place
	resource string
	last     time.Duration
}

func newActivityListCmd(c *cli.Env) *cobra.Command {
	o := &activityOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list TREE[:node/path]...",
		Short: "Show recent activity at nodes or of items",
		Long: `Show recent activity in the subtree of a node, or of the items of a resource. First, for each of the
first eight resources of the tree:

  USED          held at the node and below it now
  LIMIT         the limit in force at the node
  HIGHEST       the most that was held at the end of a step
  WAITING       what waiting requests ask for
  CURVE         what was held, from nothing to the limit, or to the highest if that is more or there is no limit

Then, unless several nodes are named, the steps of five minutes:

  FROM          when the step began, by the clock of the server
  HELD          claims held at its end
  WAITING       claims that waited at its end
  GRANTED       during the step
  RELEASED      during the step
  LOST          expired or preempted during the step
  LONGEST WAIT  of the requests granted from the queue during the step
  ITEMS         number of items by state at its end

An allocation with several claims there counts once for each. Every server records what it has seen since its start,
for 24 hours at most; another server may have recorded more.`,
		Example: `  quorate activity list cern:atlas/physics
  quorate activity list cern cern:atlas cern:cms --last 24h
  quorate activity list ci --resource aws-account --last 24h
  quorate activity list cern -o json`,
		Args: cobra.RangeArgs(1, mostActivityNodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runActivity(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVar(&o.resource, "resource", "", "show the items of this resource instead of a node")
	cli.SpanVar(cmd.Flags(), &o.last, "last", time.Hour, "how far back to look, at most 24h")
	return cmd
}

// mostActivityNodes is the most nodes in a request.
const mostActivityNodes = 32

func (o *activityOptions) runActivity(ctx context.Context, args []string) error {
	if err := o.parse(args); err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Activity.GetActivity(ctx, o.request())
	if err != nil {
		return err
	}
	if len(answer.GetSeries()) != len(o.at) && len(o.at) > 1 {
		return fmt.Errorf("the node that answered runs a version that shows one node at a time; " +
			"name another with --server")
	}
	answer.Steps = lastSteps(answer.GetSteps(), o.last)
	o.Messagef("as seen by %s, up to index %d", answer.GetRead().GetServedBy(), answer.GetRead().GetIndex())
	for i, series := range answer.GetSeries() {
		if len(series.GetSteps()) == 0 {
			o.Messagef("no activity is recorded at %s", o.at[i])
		}
	}
	return o.Print(answer, func(p *cli.Page) error { return o.printActivity(p, answer) })
}

func (o *activityOptions) parse(args []string) error {
	for _, arg := range args {
		at, err := cli.ParsePlace(arg)
		if err != nil {
			return err
		}
		o.at = append(o.at, at)
		switch {
		case at.Tree != o.at[0].Tree:
			return cli.Usagef("%s and %s are in different trees: ask for one tree at a time", o.at[0], at)
		case o.resource != "" && at.Node != "":
			return cli.Usagef("--resource applies to a whole tree: leave out :%s or --resource", at.Node)
		}
	}
	switch {
	case o.resource != "" && len(o.at) > 1:
		return cli.Usagef("--resource applies to a whole tree: name the tree once")
	case o.last <= 0 || o.last > 24*time.Hour:
		return cli.Usagef("--last must be more than 0 and at most 24h, not %v", o.last)
	}
	return nil
}

func (o *activityOptions) request() *quoratev1beta1.GetActivityRequest {
	request := &quoratev1beta1.GetActivityRequest{
		Tree: o.at[0].Tree, Node: o.at[0].Node, Resource: o.resource, Read: o.ReadOptions(),
		LastSteps: int32((o.last + stepLength - 1) / stepLength),
	}
	if len(o.at) > 1 {
		request.Node = ""
		for _, at := range o.at {
			request.Nodes = append(request.Nodes, at.Node)
		}
	}
	return request
}

// stepLength is that of the steps of an activity.
const stepLength = 5 * time.Minute

func (o *activityOptions) printActivity(p *cli.Page, answer *quoratev1beta1.GetActivityResponse) error {
	series := answer.GetSeries()
	if len(series) == 0 {
		series = []*quoratev1beta1.ActivitySeries{{Steps: answer.GetSteps()}}
	}
	rows := [][]string{amountsHeading}
	for i, one := range series {
		if len(one.GetSteps()) > 0 {
			rows = append(rows, amountRows(o.at[i], one.GetSteps())...)
		}
	}
	if len(rows) > 1 {
		if err := p.Table(rows); err != nil {
			return err
		}
	}
	if len(o.at) > 1 {
		return nil
	}
	if len(rows) > 1 {
		p.Linef("")
	}
	return p.Table(activityRows(answer.GetSteps(), o.resource != ""))
}

func lastSteps(steps []*quoratev1beta1.ActivityStep, span time.Duration) []*quoratev1beta1.ActivityStep {
	for i, step := range steps {
		if steps[len(steps)-1].GetBeginsAt().AsTime().Sub(step.GetBeginsAt().AsTime()) < span {
			return steps[i:]
		}
	}
	return steps
}

func activityRows(steps []*quoratev1beta1.ActivityStep, items bool) [][]string {
	rows := [][]string{{"FROM", "HELD", "WAITING", "GRANTED", "RELEASED", "LOST", "LONGEST WAIT"}}
	if items {
		rows[0] = append(rows[0], "ITEMS")
	}
	for _, step := range steps {
		row := []string{cli.FormatTime(step.GetBeginsAt())}
		for _, count := range []int64{
			step.GetHeld(), step.GetWaiting(), step.GetGranted(), step.GetReleased(),
			step.GetLost(),
		} {
			row = append(row, strconv.FormatInt(count, 10))
		}
		row = append(row, waitText(step.GetLongestWaitMs()))
		if items {
			row = append(row, itemStates(step.GetStates()))
		}
		rows = append(rows, row)
	}
	return rows
}

func waitText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

func itemStates(counts map[string]int64) string {
	var list []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(list, ", ")
}
