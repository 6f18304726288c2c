package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// waitTimeout is the default; it covers the time until a new member becomes a voter.
	waitTimeout = 2 * time.Minute
	// waitPause is the time between two checks.
	waitPause = 250 * time.Millisecond
)

// waitOptions are the conditions to wait for; negative numbers are ignored.
type waitOptions struct {
	*cli.Env

	members, voters int
	healthy         bool
}

func newWaitCmd(c *cli.Env) *cobra.Command {
	o := &waitOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait for a number of members or voters, or for their health",
		Long: `Wait until the cluster has a leader, the given numbers of members and voters, and with --healthy until
all members are healthy, as a check finds that begins after the command; for 2 minutes, or for --timeout. For scripts,
between one step and the next.`,
		Example: "  quorate cluster wait --healthy\n  quorate cluster wait --voters 5 --healthy --timeout 5m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("timeout") {
				o.Timeout = waitTimeout
			}
			return o.runWait(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&o.members, "members", -1, "wait for this many members, voting or not")
	cmd.Flags().IntVar(&o.voters, "voters", -1, "wait for this many voters")
	cmd.Flags().BoolVar(&o.healthy, "healthy", false, "wait until all members are healthy")
	return cmd
}

func (o *waitOptions) runWait(ctx context.Context) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	missing := "no server answers"
	for {
		answer, err := o.listMembers(ctx, quorate)
		if err == nil {
			if missing = o.unmetCondition(answer); missing == "" {
				return o.Print(answer, func(p *cli.Page) error { return p.Table(healthRows(answer)) })
			}
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			o.Messagef("quorate: timed out after %v: %s", o.Timeout, missing)
			return &cli.ExitError{Code: cli.ExitTimedOut, Ours: true}
		}
	}
}

func (o *waitOptions) listMembers(ctx context.Context, quorate *client.Client) (*adminv1.ListMembersResponse, error) {
	return quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
}

// unmetCondition describes the first condition that is not met; empty if all are.
func (o *waitOptions) unmetCondition(answer *adminv1.ListMembersResponse) string {
	if answer.GetLeaderId() == "" {
		return "the cluster has no leader"
	}
	members, voters := 0, int(answer.GetVoters())
	for _, m := range answer.GetMembers() {
		if m.GetSeat() != adminv1.Seat_SEAT_VOTER && m.GetSeat() != adminv1.Seat_SEAT_NON_VOTER {
			continue
		}
		members++
		if o.healthy && !m.GetHealthy() {
			return fmt.Sprintf("%s is not healthy: %s", m.GetId(), m.GetProblem())
		}
	}
	if o.members >= 0 && members != o.members {
		return fmt.Sprintf("there are %d members, not %d", members, o.members)
	}
	if o.voters >= 0 && voters != o.voters {
		return fmt.Sprintf("there are %d voters, not %d", voters, o.voters)
	}
	return ""
}
