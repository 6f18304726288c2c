//go:build unix

// Package node has the commands that run servers: one as a process, several for trying things, and the demo.
package node

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// AddCommands adds the commands that run servers.
func AddCommands(to *cli.Nouns) {
	to.Add("server", newServerCmd, newProbeCmd, newDevCmd)
}
