// Package usage has the commands that show limits and usage.
package usage

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// AddCommands adds the commands that show limits and use.
func AddCommands(to *cli.Nouns) {
	to.Add("tree", newTreeListCmd)
	to.Add("node", newNodeListCmd)
	to.Add("principal", newPrincipalListCmd)
	to.Add("activity", newActivityListCmd)
}
