//go:build !unix

package access

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// localCommands are none: no server runs here.
func localCommands(*cli.Env) []*cobra.Command { return nil }
