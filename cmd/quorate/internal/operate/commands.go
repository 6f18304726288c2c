// Package operate has the commands for operating a cluster: members, diagnostics, backups, recovery and certificates.
package operate

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Commands are the commands for operating a cluster.
func Commands(c *cli.Env) []*cobra.Command {
	return append(localCommands(c),
		newStatusCmd(c),
		newClusterCmd(c),
		newDebugCmd(c),
		newWebhooksCmd(c),
		newSnapshotCmd(c),
		newTLSCmd(c),
	)
}
