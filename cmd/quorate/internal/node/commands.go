//go:build unix

// Package node has the commands that run servers: one as a process, several for trying things, and the demo.
package node

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Commands are the commands that run servers.
func Commands(c *cli.Env) []*cobra.Command {
	return []*cobra.Command{
		newServerCmd(c),
		newHealthcheckCmd(c),
		newDevCmd(c),
		newDemoCmd(c),
	}
}
