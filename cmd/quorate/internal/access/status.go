package access

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	rights "github.com/quorate/quorate/access"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newWhoAmICmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show who you are to the cluster",
		Long: `Show who you are to the cluster: the user that your token or certificate stands for, the groups that
count, the verbs on the cluster, and when the credential ends. No verb is needed.`,
		Example: "  quorate access whoami\n  QUORATE_TOKEN_FILE=ci.token quorate access whoami -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quorate, ctx, cancel, err := c.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cancel()
			answer, err := quorate.Access.WhoAmI(ctx, &quoratev1.WhoAmIRequest{})
			if err != nil {
				return err
			}
			return c.Print(answer, func(p *cli.Page) error {
				return p.Table(append(callerRows(answer), []string{"mode", modeText(answer.GetMode())}))
			})
		},
	}
}

// callerRows describe the caller.
func callerRows(who *quoratev1.WhoAmIResponse) [][]string {
	user := cmp.Or(who.GetUser(), "none: no credential that holds was presented")
	return [][]string{
		{"user", user},
		{"kind", who.GetKind()},
		{"groups", listText(who.GetGroups())},
		{"verbs on the cluster", clusterVerbsText(who.GetClusterVerbs())},
		{"ends", cmp.Or(cli.FormatTime(who.GetEnds()), "-")},
	}
}

// clusterVerbsText shortens the list of all verbs.
func clusterVerbsText(names []string) string {
	if verbs, err := rights.ParseVerbs(names); err == nil && verbs == rights.AllVerbs {
		return "all"
	}
	return listText(names)
}

// accessStatus is what status shows.
type accessStatus struct {
	Mode             string   `json:"mode"`
	User             string   `json:"user"`
	Kind             string   `json:"kind"`
	Groups           []string `json:"groups"`
	ClusterVerbs     []string `json:"clusterVerbs"`
	Ends             string   `json:"ends,omitempty"`
	Accounts         *int     `json:"accounts"` // null if the caller may not see them
	DisabledAccounts *int     `json:"disabledAccounts"`
}

func newStatusCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the mode of the cluster, the number of accounts, and who you are",
		Long: `Show the mode of the cluster, the number of accounts, and who you are. The number of accounts needs the
verb access.read.

open      every caller may do everything
watching  every caller may do everything, and what guarded would refuse is counted and logged
guarded   what no binding gives is refused`,
		Example: "  quorate access status\n  quorate access status -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), c) },
	}
}

func runStatus(ctx context.Context, c *cli.Env) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	who, err := quorate.Access.WhoAmI(ctx, &quoratev1.WhoAmIRequest{})
	if err != nil {
		return err
	}
	status := accessStatus{
		Mode: modeText(who.GetMode()), User: who.GetUser(), Kind: who.GetKind(), Groups: who.GetGroups(),
		ClusterVerbs: who.GetClusterVerbs(), Ends: cli.FormatTime(who.GetEnds()),
	}
	all, err := fetchAccounts(ctx, c, quorate)
	switch connect.CodeOf(err) { //nolint:exhaustive // all other codes are failures
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
	default:
		if err != nil {
			return err
		}
		total, disabled := len(all.GetAccounts()), 0
		for _, account := range all.GetAccounts() {
			if account.GetDisabled() {
				disabled++
			}
		}
		status.Accounts, status.DisabledAccounts = &total, &disabled
	}
	return c.PrintValue(status, func(p *cli.Page) error {
		rows := [][]string{{"mode", status.Mode}, {"accounts", accountsText(status)}}
		return p.Table(append(rows, callerRows(who)...))
	})
}

// accountsText counts accounts.
func accountsText(s accessStatus) string {
	switch {
	case s.Accounts == nil:
		return "not visible without access.read"
	case *s.DisabledAccounts > 0:
		return fmt.Sprintf("%d, of which %d are disabled", *s.Accounts, *s.DisabledAccounts)
	}
	return strconv.Itoa(*s.Accounts)
}
