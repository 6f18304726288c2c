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

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type activityOptions struct {
	*cli.Env
	at, resource string
	last         time.Duration
}

func newActivityCmd(c *cli.Env) *cobra.Command {
	o := &activityOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "activity TREE[:node/path]",
		Short: "Show recent activity at a node or of items",
		Long: `Show recent activity in the subtree of a node, or of the items of a resource, in steps of five minutes:

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
		Example: `  quorate activity cern:atlas/physics
  quorate activity ci --resource aws-account --last 24h
  quorate activity cern -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.at = args[0]
			return o.runActivity(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.resource, "resource", "", "show the items of this resource instead of a node")
	cmd.Flags().DurationVar(&o.last, "last", time.Hour, "how far back to look, at most 24h")
	return cmd
}

func (o *activityOptions) runActivity(ctx context.Context) error {
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return err
	}
	switch {
	case o.resource != "" && at.Node != "":
		return cli.Usagef("--resource applies to a whole tree: leave out :%s or --resource", at.Node)
	case o.last <= 0 || o.last > 24*time.Hour:
		return cli.Usagef("--last must be more than 0 and at most 24h, not %v", o.last)
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Activity.GetActivity(ctx, &quoratev1.GetActivityRequest{
		Tree: at.Tree, Node: at.Node, Resource: o.resource, Read: o.ReadOptions(),
	})
	if err != nil {
		return err
	}
	answer.Steps = lastSteps(answer.GetSteps(), o.last)
	o.Messagef("as seen by %s, up to index %d", answer.GetRead().GetServedBy(), answer.GetRead().GetIndex())
	return o.Print(answer, func(p *cli.Page) error {
		return p.Table(activityRows(answer.GetSteps(), o.resource != ""))
	})
}

// lastSteps are the steps that end within a span before the end of the last one.
func lastSteps(steps []*quoratev1.ActivityStep, span time.Duration) []*quoratev1.ActivityStep {
	for i, step := range steps {
		if steps[len(steps)-1].GetFrom().AsTime().Sub(step.GetFrom().AsTime()) < span {
			return steps[i:]
		}
	}
	return steps
}

func activityRows(steps []*quoratev1.ActivityStep, items bool) [][]string {
	rows := [][]string{{"FROM", "HELD", "WAITING", "GRANTED", "RELEASED", "LOST", "LONGEST WAIT"}}
	if items {
		rows[0] = append(rows[0], "ITEMS")
	}
	for _, step := range steps {
		row := []string{cli.FormatTime(step.GetFrom())}
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

// waitText is a time in the queue; empty if no request waited.
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
