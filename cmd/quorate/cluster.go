package main

import "github.com/spf13/cobra"

// newClusterCmd holds what operators do with a cluster as a whole.
func newClusterCmd(c *cli) *cobra.Command {
	return newGroup("cluster", "Keep the cluster: see and change how it stands", newLevelCmd(c), newDigestsCmd(c))
}
