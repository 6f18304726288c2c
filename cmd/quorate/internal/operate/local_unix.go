//go:build unix

package operate

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// addLocalCommands adds the commands about the data folder of a server.
func addLocalCommands(to *cli.Nouns) {
	to.Add("cluster", newRecoverCmd)
	to.Add("quarantine", newQuarantineLiftCmd)
	to.Add("log", newLogConvertCmd)
}

// addStoppedNode adds the flag for the digests of a stopped node.
func (o *digestsOptions) addStoppedNode(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", dataDirHelp+"; its digests are computed, and no server is asked")
}

func (o *digestsOptions) showStopped() error {
	return (&quarantineOptions{Env: o.Env, dataDir: o.dataDir}).showDigests()
}
