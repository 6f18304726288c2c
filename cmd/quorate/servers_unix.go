//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/bench"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/node"
)

// serverCommands are those that run servers.
func serverCommands(c *cli.Env) []*cobra.Command {
	return append(node.Commands(c), bench.NewBenchCmd(c))
}
