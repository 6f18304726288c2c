//go:build !unix

package access

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// localCommands is empty: a server does not run on this system.
func localCommands() []cli.Constructor { return nil }
