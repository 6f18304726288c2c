package main

import (
	"strconv"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newLeasesCmd(c *cli) *cobra.Command {
	o := &allocationsOptions{cli: c, leases: true}
	cmd := &cobra.Command{
		Use:   "leases",
		Short: "List leases with the time that they have left, oldest first",
		Long: `List leases with the time that they have left, oldest first. The time is ledger time: it stands still while the
cluster has no leader.`,
		Example: `  quorate leases
  quorate leases --tree ci --node tenants/web -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

// leaseRows is the table of leases at a moment of ledger time.
func (u units) leaseRows(leases []*quoratev1.Allocation, nowMs int64) [][]string {
	rows := [][]string{{"ID", "FENCE", "TTL", "LEFT", "USER", "HOLDS", "GIVES WAY TO"}}
	for _, a := range leases {
		rows = append(rows, []string{
			a.GetId(), strconv.FormatUint(a.GetFence(), 10), lasting(a.GetTtlMs()), lasting(a.GetExpiresLedgerMs() - nowMs),
			a.GetPrincipal().GetUser(), u.claims(a), a.GetRevokedBy(),
		})
	}
	return rows
}
