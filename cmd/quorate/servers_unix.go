//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/bench"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/node"
	"github.com/quorate/quorate/internal/server"
)

func serverCommands(c *cli.Env) []*cobra.Command {
	return append(node.Commands(c), bench.NewBenchCmd(c))
}

// serverVariables are the variables of the environment that are settings of servers.
func serverVariables() []string { return server.EnvironmentVariables() }
