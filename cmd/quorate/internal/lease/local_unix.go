//go:build unix

package lease

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// localCommands are those that need process groups and signals.
func localCommands(c *cli.Env) []*cobra.Command { return []*cobra.Command{newLeaseCmd(c)} }
