//go:build !unix

package access

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// localCommands is empty: a server does not run on this system.
func localCommands(*cli.Env) []*cobra.Command { return nil }
