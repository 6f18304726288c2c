//go:build unix

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/quorate/quorate/examples"
)

// demoHelp is the part of the help about --demo.
const demoHelp = `With --demo it starts three real servers, replays the CERN example of nested quotas on them, kills the
leader in the middle, continues, restarts it, and stops everything. Every outcome is checked: the exit code is 0 only if
each of them is as expected. No process and no file is left behind. It runs examples/demo.sh, which needs bash 5.`

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
