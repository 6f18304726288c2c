//go:build unix

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/examples"
)

// demoHelp is the part of the help about --demo.
const demoHelp = `With --demo it starts three real servers, replays the CERN example of nested quotas on them, kills the
leader in the middle, continues, restarts it, and stops everything. Every outcome is checked: the exit code is 0 only if
each of them is as expected. No process and no file is left behind. It runs examples/demo.sh, which needs bash 5. With
KEEP=1 in the environment the servers go on at the end, with the dashboard, until Ctrl-C.`

// demoGrace is the time that an interrupted demo has to stop its servers, before they are killed.
const demoGrace = 10 * time.Second

// runDemo runs the script in a process group of its own. An interrupt ends the whole group: bash alone can lose one,
// for example while it starts a program.
func runDemo(c *cobra.Command) (err error) {
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
	defer stop()
	bash, err := exec.LookPath("bash")
	if err != nil {
		return errors.New("the demo is a script for bash, which is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the file of this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "quorate-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	script := exec.CommandContext(ctx, bash, "-c", examples.Demo)
	script.Env = append(os.Environ(), "QUORATE="+self, "CERN_YAML="+examples.CERN, "TMPDIR="+dir)
	script.Stdout, script.Stderr = c.OutOrStdout(), c.ErrOrStderr()
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	script.Cancel = func() error { return syscall.Kill(-script.Process.Pid, syscall.SIGTERM) }
	script.WaitDelay = demoGrace
	err = script.Run()
	if script.Process != nil {
		_ = syscall.Kill(-script.Process.Pid, syscall.SIGKILL) // what the script left, usually nothing
	}
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil && script.ProcessState != nil && script.ProcessState.Success():
		return nil // it was over, and its servers were kept until now
	case ctx.Err() != nil:
		return errors.New("the demo was interrupted; its servers are stopped and its data is removed")
	case errors.As(err, &failed):
		return &cli.ExitError{Code: failed.ExitCode(), Ours: true} // the script has said why
	case err != nil:
		return fmt.Errorf("running bash: %w", err)
	}
	return nil
}
