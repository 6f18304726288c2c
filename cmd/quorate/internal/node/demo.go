//go:build unix

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/examples"
)

func newDemoCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show a cluster at work that loses its leader and nothing else",
		Long: `Start three real servers on this machine, replay the CERN example of nested quotas on them, kill the
leader in the middle, continue, restart it, and stop everything. Every outcome is checked: the exit code is 0 only
if each of them is as expected. No process and no file is left behind.

It runs examples/demo.sh, which needs bash 5.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return execDemo() },
	}
}

// execDemo replaces this process with the script: signals reach the script, and its exit code is that of the command.
func execDemo() error {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return errors.New("the demo is a script for bash, which is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the file of this program: %w", err)
	}
	environment := append(os.Environ(), "QUORATE="+self, "CERN_YAML="+examples.CERN)
	return fmt.Errorf("starting bash: %w", syscall.Exec(bash, []string{"bash", "-c", examples.Demo}, environment))
}
