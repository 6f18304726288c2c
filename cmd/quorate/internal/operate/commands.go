// Package operate has the commands for operating a cluster: members, diagnostics, backups, recovery and certificates.
package operate

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// AddCommands adds the commands for operating a cluster.
func AddCommands(to *cli.Nouns) {
	to.Add("cluster", newStatusCmd, newCheckCmd, newWaitCmd, newDumpCmd, newExportCmd)
	addLocalCommands(to)
	to.Add("member", newMemberListCmd, newMemberCreateCmd, newMemberSetCmd, newMemberDeleteCmd)
	to.Add("level", newLevelRaiseCmd)
	to.Add("digest", newDigestListCmd)
	to.Add("snapshot", newSnapshotCreateCmd, newSnapshotShowCmd, newSnapshotRestoreCmd)
	to.Add("webhook", newWebhookListCmd, newWebhookSetCmd, newWebhookResumeCmd, newWebhookDeleteCmd)
	to.Add("tls", newTLSCreateCmd, newTLSShowCmd)
}
