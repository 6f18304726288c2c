// Package lease has the commands about leases, items and waiting. "quorate lease run" holds a lease for as long as a
// command runs: leaseRunOptions waits for the lease, jobGuard runs the command and ends it if the lease is lost.
package lease

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

// Commands are the commands about leases, items and waiting.
func Commands(c *cli.Env) []*cobra.Command {
	return append(localCommands(c),
		newRenewCmd(c),
		newLeasesCmd(c),
		newItemsCmd(c),
		newQueueCmd(c),
		newWatchCmd(c),
	)
}

func newLeasesCmd(c *cli.Env) *cobra.Command {
	o := &request.ListOptions{Env: c, Leases: true}
	cmd := &cobra.Command{
		Use:   "leases",
		Short: "List leases with their remaining time, oldest first",
		Long: `List leases with their remaining time, oldest first. The time is ledger time, which stands still while
the cluster has no leader.`,
		Example: `  quorate leases
  quorate leases --tree ci --node tenants/web -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.RunList(cmd.Context()) },
	}
	o.AddFlags(cmd)
	return cmd
}
