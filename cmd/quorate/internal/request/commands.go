// Package request has the commands that ask for allocations, end them, explain decisions and list what is held.
// [Options], [LeaseOptions] and [WaitingLine] are also for commands that run something under a lease.
package request

import "github.com/quorate/quorate/cmd/quorate/internal/cli"

// AddCommands adds the commands about single requests and allocations.
func AddCommands(to *cli.Nouns) {
	to.Add("allocation", newAllocateCmd, newAllocationListCmd, newAllocationShowCmd, newReleaseCmd, newConfirmCmd,
		newResizeCmd, newTransferCmd, newSplitCmd, newExplainCmd)
	to.Add("event", newEventListCmd)
}
