//go:build !unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// serverCommands is empty: servers need file locks and other things of Unix.
func serverCommands(*cli.Env) []*cobra.Command { return nil }

func serverVariables() []string { return nil }
