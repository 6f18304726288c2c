//go:build !unix

package operate

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// addLocalCommands adds none: a server does not run on this system.
func addLocalCommands(*cli.Nouns) {}

// addStoppedNode adds no flag, see [addLocalCommands].
func (o *digestsOptions) addStoppedNode(*cobra.Command) {}

// showStopped is not called, because nothing sets the folder.
func (o *digestsOptions) showStopped() error { return nil }
