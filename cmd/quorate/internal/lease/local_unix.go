//go:build unix

package lease

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// localCommands are those that need process groups and signals.
func localCommands() []cli.Constructor {
	return []cli.Constructor{newLeaseRunCmd, newLeaseHoldCmd, newLeaseEndCmd}
}
