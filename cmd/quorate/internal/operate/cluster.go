package operate

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func newMemberListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show all nodes and their health",
		Long: `Show all nodes as the leader sees them; it asks each of them now.

SEAT is voter, non-voter (receives the log, has no vote yet), waiting (new, not yet added) or none (not a member,
but with data: it was removed, or belongs to another cluster). HEALTHY shows whether the node could take part in
decisions, and SINCE for how long without interruption; a new leader starts counting again. CONTACT is the time
since the node heard from the leader, BEHIND the number of log entries that it misses, CLOCK the offset of its wall
clock from the leader's. PROBLEM also names a clock that is far from civil time; such a member stays healthy.

A server that reaches no leader shows what it knows itself, and the exit code is 6.`,
		Example: "  quorate member list\n  quorate member list -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return showMembers(cmd.Context(), c) },
	}
}

func showMembers(ctx context.Context, c *cli.Env) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
	if err != nil {
		return err
	}
	if answer.GetProblem() != "" {
		c.Messagef("problem: %s", answer.GetProblem())
	}
	err = c.Print(answer, func(p *cli.Page) error { return p.Table(healthRows(answer)) })
	return cmp.Or(err, cli.CheckLeader(answer.GetLeaderId()))
}

func healthRows(answer *adminv1.ListMembersResponse) [][]string {
	rows := [][]string{{
		"MEMBER", "SEAT", "ROLE", "HEALTHY", "SINCE", "CONTACT", "BEHIND", "CLOCK", "HTTP", "RAFT", "VERSION",
		"LEVEL", "PROBLEM",
	}}
	for _, m := range answer.GetMembers() {
		role, healthy, since := enumText(m.GetRole().String(), "ROLE_"), "no", "-"
		contact, behind, clock := "-", "-", "-"
		if m.GetHealthy() {
			healthy, since = "yes", m.GetStableSinceAt().AsTime().Format(time.RFC3339)
		}
		if m.LastContactMs != nil {
			contact, behind = (time.Duration(m.GetLastContactMs()) * time.Millisecond).String(),
				strconv.FormatUint(m.GetTrailingLogs(), 10)
			clock = fmt.Sprintf("%+dms", m.GetClockOffsetMs())
		}
		rows = append(rows, []string{
			m.GetId(), seatText(m.GetSeat()), role, healthy, since, contact, behind, clock, m.GetHttpAddress(),
			m.GetRaftAddress(),
			m.GetVersion(), strconv.FormatUint(uint64(m.GetFeatureLevel()), 10), m.GetProblem(),
		})
	}
	return rows
}

func seatText(seat adminv1.Seat) string {
	return strings.ReplaceAll(enumText(seat.String(), "SEAT_"), "_", "-")
}

// enumText is the name of an enum value in lower case, without its prefix.
func enumText(name, prefix string) string {
	text := strings.ToLower(strings.TrimPrefix(name, prefix))
	if text == "unspecified" {
		return "unknown"
	}
	return text
}

// completeMembers offers the ids of all nodes; none if no server answers in time.
func completeMembers(c *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoFileComp,
			func(ctx context.Context, quorate *client.Client) ([]string, error) {
				answer, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
				var ids []string
				for _, m := range answer.GetMembers() {
					ids = append(ids, m.GetId())
				}
				return ids, err
			})
	}
}
