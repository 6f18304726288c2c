package operate

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type statusOptions struct {
	*cli.Env
	local  bool
	follow cli.Following
}

func newStatusCmd(c *cli.Env) *cobra.Command {
	o := &statusOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the cluster: members, leader, log, health",
		Long: `Show the cluster as the node that answers sees it: members, leader, log, health.

It works also while there is no leader; the exit code is 6 then. The members are in the table only: "quorate member
list -o json" has them for programs. With --watch it is shown again when members, their
leader or the configuration change, and every few seconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runStatus(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.local, "local", false, "only ask the serving node about itself")
	o.follow.AddFlag(cmd)
	return cmd
}

func (o *statusOptions) runStatus(ctx context.Context) error {
	last := time.Time{}
	o.follow.Concerns = func(m *quoratev1.WatchChangesResponse) bool {
		isDue := m.GetMembers() || m.GetHeartbeat() || time.Since(last) > statusPause
		if isDue {
			last = time.Now()
		}
		return isDue
	}
	return o.RunOrFollow(ctx, o.follow, o.showStatus)
}

// ownMember is the serving node, or nobody if the caller may not see it.
func ownMember(status *adminv1.GetStatusResponse) []*adminv1.Member {
	if status.GetMember() == nil {
		return nil
	}
	return []*adminv1.Member{status.GetMember()}
}

// statusPause is how often the status is shown again under load, because indexes and ledger time always change.
const statusPause = 4 * time.Second

func (o *statusOptions) showStatus(ctx context.Context, quorate *client.Client) error {
	answer, err := quorate.Cluster.GetStatus(ctx, &adminv1.GetStatusRequest{})
	if err != nil {
		return err
	}
	members, problem := ownMember(answer), answer.GetProblem()
	if !o.local && o.IsTable() {
		list, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
		switch {
		case err != nil: // a node that serves nobody still tells how it is
			problem = cmp.Or(problem, cli.ErrorText(err))
		default:
			members, problem = list.GetMembers(), cmp.Or(problem, list.GetProblem())
		}
	}
	if problem != "" {
		o.Messagef("problem: %s", problem)
	}
	err = o.Print(answer, func(p *cli.Page) error {
		if err := p.Table(statusRows(answer)); err != nil {
			return err
		}
		p.Linef("")
		return p.Table(memberRows(members))
	})
	return cmp.Or(err, cli.CheckLeader(answer.GetLeaderId()))
}

func statusRows(s *adminv1.GetStatusResponse) [][]string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	leader := s.GetLeaderId()
	if leader == "" {
		leader = "none"
	}
	civil := "none"
	if at := s.GetCivilTimeMs(); at != 0 {
		civil = time.UnixMilli(at).UTC().Format(time.RFC3339)
	}
	return [][]string{
		{"cluster", s.GetClusterName()},
		{"answered by", s.GetServedBy()},
		{"leader", leader},
		{"term", number(s.GetTerm())},
		{"committed", number(s.GetCommitIndex())},
		{"applied", number(s.GetAppliedIndex())},
		{"ledger time", (time.Duration(s.GetLedgerTimeMs()) * time.Millisecond).String()},
		{"civil time", civil},
		{"time zones", cmp.Or(s.GetMember().GetTimeZones(), "unknown")},
		{"revision", number(s.GetRevision())},
		{"allocations", strconv.FormatInt(s.GetHeldAllocations(), 10)},
		{"ledger size", ledgerSize(s)},
		{"ids kept for", (time.Duration(s.GetTombstoneMs()) * time.Millisecond).String()},
	}
}

// ledgerSize is the size of the ledger and its bound. Servers of earlier versions do not report it.
func ledgerSize(s *adminv1.GetStatusResponse) string {
	if s.GetLedgerBytesLimit() == 0 {
		return "unknown"
	}
	return formatMebibytes(s.GetLedgerBytes()) + " of " + formatMebibytes(s.GetLedgerBytesLimit()) + " MiB"
}

func formatMebibytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) }

func memberRows(members []*adminv1.Member) [][]string {
	rows := [][]string{{
		"MEMBER", "ROLE", "VOTER", "HTTP", "RAFT", "VERSION", "LEVEL", "LOG", "APPLIED", "LAST", "PROBLEM",
	}}
	for _, m := range members {
		role := strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))
		voter, problem := "no", m.GetProblem()
		if m.GetSeat() == adminv1.Seat_SEAT_VOTER {
			voter = "yes"
		}
		applied, last := strconv.FormatUint(m.GetAppliedIndex(), 10), strconv.FormatUint(m.GetLastIndex(), 10)
		if !m.GetReachable() {
			role, applied, last = "unknown", "-", "-"
			if problem == "" {
				problem = "does not answer"
			}
		}
		rows = append(rows, []string{
			m.GetId(), role, voter, m.GetHttpAddress(), m.GetRaftAddress(), m.GetVersion(),
			strconv.FormatUint(uint64(m.GetFeatureLevel()), 10), cmp.Or(m.GetLogStore(), "-"), applied, last, problem,
		})
	}
	return rows
}
