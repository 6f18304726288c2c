//go:build unix

package access

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func localCommands(c *cli.Env) []*cobra.Command { return []*cobra.Command{newRecoverCmd(c)} }
