//go:build !unix

package lease

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// localCommands are none: a job could not be ended with all its processes.
func localCommands() []cli.Constructor { return nil }
