package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
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
			if missing = o.unmetCondition(answer); missing == "" && o.healthy {
				missing = o.unmetHealth(ctx, quorate)
			}
			if missing == "" {
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

// unmetHealth asks all members now, because the leader's view of their health is up to two seconds old: a member that
// has died in that time is still healthy there. It describes the first member that is not; empty if all are.
func (o *waitOptions) unmetHealth(ctx context.Context, quorate *client.Client) string {
	status, err := quorate.Cluster.GetStatus(ctx, &quoratev1.GetStatusRequest{})
	if err != nil {
		return cli.ErrorText(err)
	}
	for _, m := range status.GetMembers() {
		switch {
		case !m.GetReachable():
			return m.GetId() + " does not answer"
		case m.GetLastIndex() == 0:
			return m.GetId() + " has no data"
		}
	}
	return ""
}

func (o *waitOptions) listMembers(ctx context.Context, quorate *client.Client) (*quoratev1.ListMembersResponse, error) {
	return quorate.Cluster.ListMembers(ctx, &quoratev1.ListMembersRequest{})
}

// unmetCondition describes the first condition that is not met; empty if all are.
func (o *waitOptions) unmetCondition(answer *quoratev1.ListMembersResponse) string {
	if answer.GetLeaderId() == "" {
		return "the cluster has no leader"
	}
	members, voters := 0, int(answer.GetVoters())
	for _, m := range answer.GetMembers() {
		if m.GetSeat() != quoratev1.Seat_SEAT_VOTER && m.GetSeat() != quoratev1.Seat_SEAT_NON_VOTER {
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
