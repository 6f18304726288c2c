//go:build unix

package main

import (
	"github.com/quorate/quorate/cmd/quorate/internal/bench"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/node"
	"github.com/quorate/quorate/internal/server"
)

func addServerCommands(to *cli.Nouns) {
	node.AddCommands(to)
	to.Add("cluster", bench.NewBenchCmd)
}

// serverVariables are the variables of the environment that are settings of servers.
func serverVariables() []string { return server.EnvironmentVariables() }
