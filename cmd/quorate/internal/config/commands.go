// Package config has the commands that read and change the configuration: manifests, limits, history. Start reading at
// [changeOptions.runChange], which all changes go through.
package config

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// AddCommands adds the commands that read and change the configuration.
func AddCommands(to *cli.Nouns) {
	to.Add("manifest", newPlanCmd, newApplyCmd, newManifestCreateCmd, newExportCmd, newConvertCmd)
	to.Add("revision", newRevisionListCmd, newRollbackCmd)
	to.Add("tree", newTreeDeleteCmd)
	to.Add("policy", newPolicyListCmd, newPolicyDeleteCmd)
	to.Add("node", newCordonCmd, newDrainCmd, newUncordonCmd, newMoveCmd)
	to.Add("limit", newLimitShowCmd, newLimitSetCmd)
	to.Add("schedule", newScheduleListCmd, newScheduleDeleteCmd)
	to.Add("request", newRequestCreateCmd, newRequestListCmd, newRequestApproveCmd, newRequestRejectCmd,
		newRequestDeleteCmd)
}
