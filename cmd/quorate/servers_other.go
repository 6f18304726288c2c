//go:build !unix

package main

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// addServerCommands adds none: servers need file locks and other things of Unix.
func addServerCommands(*cli.Nouns) {}

func serverVariables() []string { return nil }
