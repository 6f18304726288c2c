// Package request has the commands that ask for allocations, end them, explain decisions and list what is held.
// [Options], [LeaseOptions] and [WaitingLine] are also for commands that run something under a lease.
package request

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// Commands are the commands about single requests and allocations.
func Commands(c *cli.Env) []*cobra.Command {
	return []*cobra.Command{
		newAllocateCmd(c),
		newReleaseCmd(c),
		newResizeCmd(c),
		newTransferCmd(c),
		newSplitCmd(c),
		newConfirmCmd(c),
		newCancelCmd(c),
		newExplainCmd(c),
		newEventsCmd(c),
		newAllocationCmd(c),
		newAllocationsCmd(c),
	}
}
