//go:build unix

package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// keeperVariable is set in the process of a keeper, which is the same command line as that of the command that starts
// it. keeperPathVariable names the folder of a keeper to "quorate lease end".
const (
	keeperVariable     = "QUORATE_INTERNAL_KEEPER"
	keeperPathVariable = "QUORATE_KEEPER"
)

// mostTerminated bounds the processes that a lost lease ends.
const mostTerminated = 64

type leaseHoldOptions struct {
	jobLeaseOptions
	envFile   string
	parent    int
	deadline  time.Duration
	terminate []int
}

func newLeaseHoldCmd(c *cli.Env) *cobra.Command {
	o := &leaseHoldOptions{jobLeaseOptions: jobLeaseOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "hold {--resource RESOURCE | --at TREE[:node/path] --item RESOURCE}... {--parent PID | --deadline TIME}",
		Short: "Hold a lease in the background until quorate lease end",
		Long: `Wait for a lease, start a process that keeps it (the keeper), and return: for jobs of several steps, of which
none runs for as long as the job. "quorate lease end" releases the lease and ends the keeper.

The lease is also released when the process --parent has ended, which is $$ in a script and $PPID in a step of a CI job,
or when --deadline has passed, whichever comes first. If the lease is lost, the processes that --terminate names get
SIGTERM, and SIGKILL after --kill-after: early enough that they have ended before another holder can be granted the same
items. A negative number names a process group. "quorate lease end" then ends with exit code 7.

The variables of "quorate lease run", and QUORATE_KEEPER for "quorate lease end", are printed as commands of a shell.
With --env-file they are appended to a file instead, as NAME=VALUE lines, which is what CI systems read.`,
		Example: `  eval "$(quorate lease hold --resource aws-account --parent $$ --wait 1h)"
  quorate lease hold --resource aws-account --parent $PPID --env-file "$GITHUB_ENV" --deadline 6h --wait 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkFlags(); err != nil {
				return err
			}
			if os.Getenv(keeperVariable) != "" {
				return o.keep(cmd.Context())
			}
			return o.startKeeper(cmd.Context())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.envFile, "env-file", "", "append the variables to this `FILE` instead of printing them")
	flags.IntVar(&o.parent, "parent", 0, "release the lease when the process with this `PID` has ended")
	cli.SpanVar(flags, &o.deadline, "deadline", 0, "release the lease after this time at the latest")
	flags.IntSliceVar(&o.terminate, "terminate", nil,
		"end the process with this `PID` if the lease is lost; may be repeated")
	return cmd
}

func (o *leaseHoldOptions) checkFlags() error {
	switch {
	case o.parent == 0 && o.deadline == 0:
		return cli.Usagef("name what ends the lease if quorate lease end does not: --parent $$ (in a step of a CI job " +
			"--parent $PPID), or --deadline TIME")
	case o.parent < 0 || o.parent == 1:
		return cli.Usagef("--parent %d is not a process that can end before this machine", o.parent)
	case o.deadline < 0 || o.deadline > 0 && o.deadline < time.Second:
		return cli.Usagef("--deadline must be 1s or more, not %v", o.deadline)
	case len(o.terminate) > mostTerminated:
		return cli.Usagef("--terminate names at most %d processes", mostTerminated)
	case slices.ContainsFunc(o.terminate, func(pid int) bool { return pid >= -1 && pid <= 1 }):
		return cli.Usagef("--terminate needs the number of a process or, negative, of a process group, larger than 1")
	}
	if o.parent != 0 {
		if _, err := startOf(o.parent); err != nil {
			return cli.Usagef("--parent %d: %v", o.parent, err)
		}
	}
	return o.jobLeaseOptions.checkFlags()
}

type held struct {
	// Variables are NAME=VALUE pairs for the job.
	Variables []string `json:"variables"`
	// Text describes the grant to a person.
	Text string `json:"text"`
}

// startKeeper starts the keeper, waits until it has the lease, and passes on the variables. The pipe confirm stays open
// while this command waits: the keeper withdraws its request if the pipe is closed without a byte.
func (o *leaseHoldOptions) startKeeper(ctx context.Context) error {
	reports, reported, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the keeper of the lease: %w", err)
	}
	defer reports.Close() //nolint:errcheck // it was only read
	confirmed, confirm, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("start the keeper of the lease: %w", err), reported.Close())
	}
	defer confirm.Close() //nolint:errcheck // a second time after a grant
	keeper, err := o.keeperCommand(reported, confirmed)
	if err == nil {
		err = keeper.Start()
	}
	if err := errors.Join(err, reported.Close(), confirmed.Close()); err != nil {
		return fmt.Errorf("start the keeper of the lease: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = confirm.Close() })() // the keeper withdraws the request
	text, err := io.ReadAll(reports)
	if err != nil {
		return fmt.Errorf("wait for the keeper of the lease: %w", err)
	}
	var got held
	if json.Unmarshal(text, &got) != nil { // it has ended, and has printed why
		return keeperError(keeper.Wait())
	}
	if err := o.passOn(got); err != nil {
		return err // closing the pipe withdraws the lease
	}
	if _, err := confirm.Write([]byte("y")); err != nil {
		return fmt.Errorf("the keeper of the lease has ended: %w", err)
	}
	o.Messagef("%s", got.Text)
	return nil
}

func (o *leaseHoldOptions) keeperCommand(reported, confirmed *os.File) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	keeper := exec.Command(path, o.Args...) //nolint:noctx // it outlives this command
	keeper.Env = append(os.Environ(), keeperVariable+"=1")
	// Through a pipe: who waits for the end of our standard error, as CI systems do, must not wait for the keeper.
	keeper.Stderr, keeper.ExtraFiles = struct{ io.Writer }{o.ErrOut}, []*os.File{reported, confirmed}
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return keeper, nil
}

// keeperError is the exit code of a keeper that ended without a lease.
func keeperError(err error) error {
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() > 0 {
		return &cli.ExitError{Code: failed.ExitCode(), Ours: true}
	}
	return fmt.Errorf("the keeper ended without a lease: %w", errors.Join(err, errKeeperEnded))
}

var errKeeperEnded = errors.New("the request was withdrawn")

func (o *leaseHoldOptions) passOn(got held) error {
	var text strings.Builder
	if o.envFile == "" {
		for _, variable := range got.Variables {
			name, value, _ := strings.Cut(variable, "=")
			fmt.Fprintf(&text, "export %s=%s\n", name, cli.QuoteWord(value))
		}
		return o.Write([]byte(text.String()))
	}
	for _, variable := range got.Variables {
		text.WriteString(variable + "\n")
	}
	file, err := os.OpenFile(o.envFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text.String())
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("write the variables of the lease: %w", err)
	}
	return nil
}

func notifySignals(signals chan<- os.Signal) (stop func()) {
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return func() { signal.Stop(signals) }
}
