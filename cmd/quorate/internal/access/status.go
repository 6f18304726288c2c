package access

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	rights "github.com/quorate/quorate/internal/access"
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
			answer, err := quorate.Identity.WhoAmI(ctx, &quoratev1.WhoAmIRequest{})
			if err != nil {
				return err
			}
			return c.Print(answer, func(p *cli.Page) error {
				return p.Table(append(callerRows(answer), []string{"mode", modeText(answer.GetMode())}))
			})
		},
	}
}

func callerRows(identity *quoratev1.WhoAmIResponse) [][]string {
	user := cmp.Or(identity.GetUser(), "none: no credential that holds was presented")
	return [][]string{
		{"user", user},
		{"kind", identity.GetKind()},
		{"groups", listText(identity.GetGroups())},
		{"verbs on the cluster", clusterVerbsText(identity.GetClusterVerbs())},
		{"ends", cmp.Or(cli.FormatTime(identity.GetEndsAt()), "-")},
	}
}

// clusterVerbsText shortens the list of all verbs.
func clusterVerbsText(names []string) string {
	if verbs, err := rights.ParseVerbs(names); err == nil && verbs == rights.AllVerbs {
		return "all"
	}
	return listText(names)
}

type accessStatus struct {
	Mode             string   `json:"mode"`
	User             string   `json:"user"`
	Kind             string   `json:"kind"`
	Groups           []string `json:"groups"`
	ClusterVerbs     []string `json:"clusterVerbs"`
	Ends             string   `json:"ends,omitempty"`
	Accounts         *int     `json:"accounts"` // null if the caller may not see them
	DisabledAccounts *int     `json:"disabledAccounts"`
	// Report is what a guarded cluster would refuse; null if the cluster is guarded or the caller may not see it.
	Report *guardReport `json:"report"`
}

// guardReport is what stands between a cluster and being guarded.
type guardReport struct {
	UnownedAllocations int64            `json:"unownedAllocations"`
	UnownedIsCut       bool             `json:"unownedIsCut,omitempty"`
	WouldRefuse        map[string]int64 `json:"wouldRefuse"` // by verb
}

func newStatusCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the mode of the cluster, the number of accounts, and who you are",
		Long: `Show the mode of the cluster, the number of accounts, and who you are. Before the cluster is guarded, show
what guarding it would mean: allocations without an owner, and how much would have been refused while it was watching,
by verb. The number of accounts and the latter need the verb access.read.

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
	identity, err := quorate.Identity.WhoAmI(ctx, &quoratev1.WhoAmIRequest{})
	if err != nil {
		return err
	}
	status := accessStatus{
		Mode: modeText(identity.GetMode()), User: identity.GetUser(), Kind: identity.GetKind(), Groups: identity.GetGroups(),
		ClusterVerbs: identity.GetClusterVerbs(), Ends: cli.FormatTime(identity.GetEndsAt()),
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
	if status.Report, err = fetchReport(ctx, quorate, identity.GetMode()); err != nil {
		return err
	}
	return c.PrintValue(status, func(p *cli.Page) error {
		rows := [][]string{{"mode", status.Mode}, {"accounts", accountsText(status)}}
		rows = append(append(rows, callerRows(identity)...), reportRows(status.Report)...)
		return p.Table(rows)
	})
}

// fetchReport returns nil in a guarded cluster, and if the caller may not read the report.
func fetchReport(ctx context.Context, quorate *client.Client, mode quoratev1.AccessMode) (*guardReport, error) {
	if mode == quoratev1.AccessMode_ACCESS_MODE_GUARDED {
		return nil, nil //nolint:nilnil // it is guarded already
	}
	answer, err := quorate.Access.GetGuardReport(ctx, &adminv1.GetGuardReportRequest{})
	switch connect.CodeOf(err) { //nolint:exhaustive // all other codes are failures
	case connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeUnimplemented:
		return nil, nil //nolint:nilnil // not visible, or a server of an earlier version
	default:
		if err != nil {
			return nil, err
		}
	}
	report := &guardReport{
		UnownedAllocations: answer.GetUnownedAllocations(), UnownedIsCut: answer.GetUnownedIsCut(),
		WouldRefuse: map[string]int64{},
	}
	for _, w := range answer.GetRefusals() {
		report.WouldRefuse[w.GetVerb()] = w.GetCalls()
	}
	return report, nil
}

// reportRows say what is left to do before the cluster is guarded, with the commands that do it.
func reportRows(r *guardReport) [][]string {
	if r == nil {
		return nil
	}
	unowned, refused := strconv.FormatInt(r.UnownedAllocations, 10), "none"
	if r.UnownedIsCut {
		unowned = "at least " + unowned
	}
	if r.UnownedAllocations > 0 {
		unowned += ", which then only operators can renew and release"
	}
	if len(r.WouldRefuse) > 0 {
		var parts []string
		for _, verb := range slices.Sorted(maps.Keys(r.WouldRefuse)) {
			parts = append(parts, fmt.Sprintf("%s %d", verb, r.WouldRefuse[verb]))
		}
		refused = strings.Join(parts, ", ") + " (since the leader started)"
	}
	return [][]string{{"allocations without owner", unowned}, {"guarded would have refused", refused}}
}

func accountsText(s accessStatus) string {
	switch {
	case s.Accounts == nil:
		return "not visible without access.read"
	case *s.DisabledAccounts > 0:
		return fmt.Sprintf("%d, of which %d are disabled", *s.Accounts, *s.DisabledAccounts)
	}
	return strconv.Itoa(*s.Accounts)
}
