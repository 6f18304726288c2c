//go:build unix

package lease

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type leaseEndOptions struct {
	*cli.Env
	envFile string
}

func newLeaseEndCmd(c *cli.Env) *cobra.Command {
	o := &leaseEndOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "end",
		Short: "Release a lease of quorate lease hold",
		Long: `Release the lease that "quorate lease hold" has left in the background, and end its keeper. The lease is that of
the variables QUORATE_KEEPER, QUORATE_LEASE and QUORATE_FENCE, in the environment or in --env-file.

The exit code is 0 if the lease was held until now, and 7 if it ended before: the job may have run without it.`,
		Example: `  quorate lease end
  quorate lease end --env-file job.env`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runEnd(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.envFile, "env-file", "", "read the variables from this `FILE`; the last ones in it count")
	return cmd
}

func (o *leaseEndOptions) runEnd(ctx context.Context) error {
	variables, err := o.variables()
	if err != nil {
		return err
	}
	folder, id := variables[keeperPathVariable], variables[leaseVariable]
	o.Namespace = cmp.Or(o.Namespace, variables[cli.NamespaceVariable])
	if folder == "" || id == "" {
		return cli.Usagef("%s and %s are not set: quorate lease hold prints them, or appends them to --env-file",
			keeperPathVariable, leaseVariable)
	}
	end, known, err := askKeeper(ctx, folder, 2*o.Timeout) // it may need one to reach a server
	if err == nil && !known {
		o.Messagef("the keeper of %s has ended without a trace; asking the servers", id)
		return errors.Join(o.releaseWithoutKeeper(ctx, id, variables[fenceVariable]), removeFolder(folder))
	}
	if err != nil {
		return err
	}
	if !end.Released {
		o.Messagef("quorate: the lease %s ended before this command: %s", id, end.Text)
		return errors.Join(removeFolder(folder), &cli.ExitError{Code: cli.ExitLeaseLost, Ours: true})
	}
	o.Messagef("%s", end.Text)
	return nil
}

func removeFolder(folder string) error {
	if err := os.Remove(filepath.Join(folder, outcomeFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what the keeper left: %w", err)
	}
	_ = os.Remove(filepath.Join(folder, socketFile))
	_ = os.Remove(folder) // only if it is empty now
	return nil
}

// releaseWithoutKeeper releases a lease whose keeper was killed. The job had its lease until now if the allocation of
// the same grant is still held.
func (o *leaseEndOptions) releaseWithoutKeeper(ctx context.Context, id, fenceText string) error {
	fence, err := strconv.ParseUint(fenceText, 10, 64)
	if err != nil || fence == 0 {
		return cli.Usagef("%s is %q, which is not a fence: quorate lease hold sets it", fenceVariable, fenceText)
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id, Fence: fence})
	switch problem, _ := client.ProblemOf(err); {
	case problem.GetReason() == "FENCE_MISMATCH":
		o.Messagef("quorate: the lease %s ended before this command: another grant has its id", id)
		return &cli.ExitError{Code: cli.ExitLeaseLost, Ours: true}
	case err != nil:
		return err
	case answer.GetWrite().GetRepetition():
		o.Messagef("quorate: the lease %s ended before this command: %s", id, cli.StateText(answer.GetAllocation()))
		return &cli.ExitError{Code: cli.ExitLeaseLost, Ours: true}
	}
	o.Messagef("released")
	return nil
}

// mostEnvFile bounds the size of --env-file.
const mostEnvFile = 1 << 20

func (o *leaseEndOptions) variables() (map[string]string, error) {
	found := map[string]string{}
	names := []string{keeperPathVariable, leaseVariable, fenceVariable, cli.NamespaceVariable}
	if o.envFile == "" {
		for _, name := range names {
			found[name] = os.Getenv(name)
		}
		return found, nil
	}
	info, err := os.Stat(o.envFile)
	if err != nil {
		return nil, fmt.Errorf("read the variables of the lease: %w", err)
	}
	if info.Size() > mostEnvFile {
		return nil, cli.Usagef("--env-file %s has more than %d bytes", o.envFile, mostEnvFile)
	}
	file, err := os.Open(o.envFile)
	if err != nil {
		return nil, fmt.Errorf("read the variables of the lease: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, mostEnvFile)
	for lines.Scan() {
		if name, value, isPair := strings.Cut(lines.Text(), "="); isPair {
			found[name] = value
		}
	}
	return found, lines.Err()
}
