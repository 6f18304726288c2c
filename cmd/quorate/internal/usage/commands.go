// Package usage has the commands that show limits and usage.
package usage

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Commands are the commands that show limits and use.
func Commands(c *cli.Env) []*cobra.Command {
	return []*cobra.Command{
		newTreesCmd(c),
		newUsageCmd(c),
		newPrincipalsCmd(c),
		newActivityCmd(c),
	}
}
