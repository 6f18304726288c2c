// Package config has the commands that read and change the configuration: manifests, limits, history. Start reading at
// [changeOptions.runChange], which all changes go through.
package config

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Commands are the commands that read and change the configuration.
func Commands(c *cli.Env) []*cobra.Command {
	return []*cobra.Command{
		newPlanCmd(c),
		newApplyCmd(c),
		newExportCmd(c),
		newConvertCmd(c),
		newHistoryCmd(c),
		newRollbackCmd(c),
		newLimitsCmd(c),
		newMoveCmd(c),
		newHoldCmd(c),
		newDrainCmd(c),
		newResumeCmd(c),
		newHoldsCmd(c),
		newTreeCmd(c),
		newPolicyCmd(c),
	}
}
