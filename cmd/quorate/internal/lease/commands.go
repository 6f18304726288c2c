// Package lease has the commands about leases, items and waiting. "quorate lease run" holds a lease for as long as a
// command runs: leaseRunOptions waits for the lease, jobGuard runs the command and ends it if the lease is lost.
package lease

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

// AddCommands adds the commands about leases, items and waiting.
func AddCommands(to *cli.Nouns) {
	to.Add("lease", newLeaseListCmd)
	to.Add("lease", localCommands()...)
	to.Add("allocation", newRenewCmd)
	to.Add("item", newItemListCmd, newItemSetCmd, newItemResetCmd)
	to.Add("queue", newQueueListCmd)
	to.Add("event", newWatchCmd)
}

func newLeaseListCmd(c *cli.Env) *cobra.Command {
	o := &request.ListOptions{Env: c, Leases: true}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List leases with their remaining time, oldest first",
		Long: `List leases with their remaining time, oldest first. The time is ledger time, which stands still while
the cluster has no leader.`,
		Example: `  quorate lease list
  quorate lease list --at ci:tenants/web -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.RunList(cmd.Context()) },
	}
	o.AddFlags(cmd)
	return cmd
}
