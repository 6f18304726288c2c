// Command quorate grants quotas and leases from a ledger that several servers keep together.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "devel"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "quorate", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newServerCommand(), newDevCommand(), newDemoCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "quorate:", err)
		return 1
	}
	return 0
}
