package operate

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newClusterCmd(c *cli.Env) *cobra.Command {
	group := cli.NewGroup("cluster", "Keep the cluster: see and change how it stands, and who belongs to it",
		newClusterMembersCmd(c), newClusterJoinCmd(c), newClusterPromoteCmd(c), newClusterDemoteCmd(c), newClusterRemoveCmd(c),
		newClusterLeaveCmd(c), newClusterTransferLeaderCmd(c), newClusterWaitCmd(c), newLevelCmd(c), newDigestsCmd(c),
	)
	group.Long = `Keep the cluster: see and change how it stands, and who belongs to it. Any server can be asked: the leader makes one change
of the membership at a time, and a majority has it before the command ends. All of them can be repeated: what is so already
is left unchanged, with exit code 0.`
	return group
}

func newClusterMembersCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "members",
		Short: "Show all nodes, and how well they are",
		Long: `Show all nodes as the leader finds them, which looks after each of them every second.

SEAT is voter, non-voter (it has the log and no vote yet), waiting (it is new and waits to be taken in) or none (it is no
member and has data: it was removed, or belongs to another cluster). HEALTHY says whether it could take part in decisions,
SINCE from when on without a break; a new leader begins to count anew. CONTACT is how long ago it heard from the leader,
BEHIND how many log entries it misses, CLOCK how far its wall clock is ahead of the leader's, for people who compare times.

A server that can ask no leader shows what it knows itself, and the exit code is 6.`,
		Example: "  quorate cluster members\n  quorate cluster members -o json",
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
	answer, err := quorate.Cluster.ListMembers(ctx, &quoratev1.ListMembersRequest{})
	if err != nil {
		return err
	}
	if answer.GetProblem() != "" {
		c.Messagef("problem: %s", answer.GetProblem())
	}
	err = c.Print(answer, func(p *cli.Page) error { return p.Table(healthRows(answer)) })
	return cmp.Or(err, cli.CheckLeader(answer.GetLeaderId()))
}

func healthRows(answer *quoratev1.ListMembersResponse) [][]string {
	rows := [][]string{{
		"MEMBER", "SEAT", "ROLE", "HEALTHY", "SINCE", "CONTACT", "BEHIND", "CLOCK", "HTTP", "RAFT", "VERSION", "LEVEL", "PROBLEM",
	}}
	for _, m := range answer.GetMembers() {
		role, healthy, since := enumText(m.GetRole().String(), "ROLE_"), "no", "-"
		contact, behind, clock := "-", "-", "-"
		if m.GetHealthy() {
			healthy, since = "yes", m.GetStableSince().AsTime().Format(time.RFC3339)
		}
		if m.GetLastContact() != nil {
			contact, behind = formatDuration(m.GetLastContact()), strconv.FormatUint(m.GetTrailingLogs(), 10)
			clock = fmt.Sprintf("%+dms", m.GetClockOffset().AsDuration().Milliseconds())
		}
		rows = append(rows, []string{
			m.GetId(), seatText(m.GetSeat()), role, healthy, since, contact, behind, clock, m.GetHttpAddress(), m.GetRaftAddress(),
			m.GetVersion(), strconv.FormatUint(uint64(m.GetFeatureLevel()), 10), m.GetProblem(),
		})
	}
	return rows
}

func seatText(seat quoratev1.Seat) string {
	return strings.ReplaceAll(enumText(seat.String(), "SEAT_"), "_", "-")
}

// enumText is the name of an enum's value as people read it.
func enumText(name, prefix string) string {
	text := strings.ToLower(strings.TrimPrefix(name, prefix))
	if text == "unspecified" {
		return "unknown"
	}
	return text
}

func formatDuration(d *durationpb.Duration) string {
	return d.AsDuration().Round(time.Millisecond).String()
}

// completeMembers offers the ids of all nodes; none if no server answers in time.
func completeMembers(c *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoFileComp,
			func(ctx context.Context, quorate *client.Client) ([]string, error) {
				answer, err := quorate.Cluster.ListMembers(ctx, &quoratev1.ListMembersRequest{})
				var ids []string
				for _, m := range answer.GetMembers() {
					ids = append(ids, m.GetId())
				}
				return ids, err
			})
	}
}
