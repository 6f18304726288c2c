package operate

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type levelOptions struct {
	*cli.Env
	dryRun bool
}

func newLevelRaiseCmd(c *cli.Env) *cobra.Command {
	o := &levelOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "raise",
		Short: "Raise the feature level of the cluster to what all members support",
		Long: `Raise the feature level of the cluster to the highest that all members support, and show it with the level of
each member. --dry-run only shows them.

New log entries of a version are not used before the level is raised; from then on, no older version can take part. The
leader raises the level once all members have supported a newer one for as long as its setting raise-level-after says;
until then the older version can be started again. This command does not wait.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runLevel(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only report the level and what is possible")
	return cmd
}

func (o *levelOptions) runLevel(ctx context.Context) error {
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	var raised uint32
	if !o.dryRun {
		answer, err := quorate.Cluster.RaiseLevel(ctx, &adminv1.RaiseLevelRequest{})
		if err != nil {
			return err
		}
		raised = answer.GetLevel()
	}
	answer, err := quorate.Cluster.GetLevel(ctx, &adminv1.GetLevelRequest{})
	if err != nil {
		return err
	}
	answer.Level = max(answer.GetLevel(), raised) // the server that answers may not have applied it yet
	if !o.IsTable() {
		return o.Print(answer, nil)
	}
	list, err := quorate.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
	if err != nil {
		return err
	}
	return o.Print(answer, func(p *cli.Page) error {
		if err := p.Table(levelRows(answer)); err != nil {
			return err
		}
		p.Linef("")
		return p.Table(memberLevelRows(list.GetMembers()))
	})
}

func levelRows(l *adminv1.GetLevelResponse) [][]string {
	possible := "unknown"
	if l.GetPossible() > 0 {
		possible = strconv.FormatUint(uint64(l.GetPossible()), 10)
	}
	return [][]string{{"level", strconv.FormatUint(uint64(l.GetLevel()), 10)}, {"possible", possible}}
}

// inConfiguration is false for a node that waits to be added, or that was removed.
func inConfiguration(m *adminv1.Member) bool {
	return m.GetSeat() != adminv1.Seat_SEAT_WAITING && m.GetSeat() != adminv1.Seat_SEAT_NONE
}

func memberLevelRows(members []*adminv1.Member) [][]string {
	rows := [][]string{{"MEMBER", "VERSION", "LEVEL", "ALIVE"}}
	for _, m := range members {
		if !inConfiguration(m) {
			continue
		}
		version, level, alive := m.GetVersion(), strconv.FormatUint(uint64(m.GetFeatureLevel()), 10), "no"
		if m.GetFeatureLevel() == 0 {
			version, level = "unknown", "-"
		}
		if m.GetAlive() {
			alive = "yes"
		}
		rows = append(rows, []string{m.GetId(), version, level, alive})
	}
	return rows
}
