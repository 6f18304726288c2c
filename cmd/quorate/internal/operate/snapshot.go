package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cluster/atomicfile"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func newSnapshotCreateCmd(c *cli.Env) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "create FILE",
		Short: "Save the whole state as a backup",
		Long: `Save everything that was acknowledged before as a backup: configuration with its history, allocations, items,
queue. Any server can save it, without delaying other calls. The file appears complete and verified, or not at all; one
that exists is only replaced with --overwrite. "-" writes to standard output, where the exit code shows whether the
backup is complete. With --stale the first server that answers saves its own state, also without a leader.`,
		Example: `  quorate snapshot create quorate.backup
  quorate snapshot create - | gpg --encrypt -r ops > quorate.backup.gpg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() && !force {
				return cli.Usagef("%s exists: name another file, or replace it with --overwrite", args[0])
			}
			return saveSnapshot(cmd.Context(), c, args[0])
		},
	}
	cmd.Flags().BoolVar(&force, "overwrite", false, "replace the file if it exists")
	return cmd
}

func saveSnapshot(ctx context.Context, c *cli.Env, path string) error {
	// --timeout bounds the wait for a server that answers, not the transfer, which depends on the size of the state.
	quorate, _, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if path == "-" {
		return saveToOutput(ctx, c, quorate)
	}
	var summary *adminv1.SaveSummary
	err = atomicfile.Write(path, func(file io.Writer) error {
		var err error
		summary, err = fetchBackup(ctx, c, quorate, file)
		return err
	})
	if err != nil {
		return err
	}
	return c.Print(summary, func(p *cli.Page) error {
		p.Linef("%s holds the state at index %d, %s from %s", path, summary.GetIndex(), bytesText(summary.GetSize()),
			summary.GetServedBy())
		return nil
	})
}

func saveToOutput(ctx context.Context, c *cli.Env, quorate *client.Client) error {
	if cli.IsTerminal(c.Out) {
		return cli.Usagef("a backup cannot be printed on a terminal: name a file, or redirect the output")
	}
	summary, err := fetchBackup(ctx, c, quorate, c.Out)
	if err == nil {
		c.Messagef("saved the state at index %d, %s from %s", summary.GetIndex(), bytesText(summary.GetSize()),
			summary.GetServedBy())
	}
	return err
}

func fetchBackup(
	ctx context.Context, c *cli.Env, quorate *client.Client, out io.Writer,
) (*adminv1.SaveSummary, error) {
	progress := startProgress(c, "received", 0)
	defer progress.clearLine()
	return quorate.SaveBackup(ctx, &adminv1.SaveRequest{Read: c.ReadOptions()}, io.MultiWriter(out, progress))
}

// progress shows the progress of a transfer on a terminal, and nothing elsewhere.
type progress struct {
	errOut      io.Writer
	what        string
	done, total uint64
	shownAt     time.Time
	shown       bool
}

func startProgress(c *cli.Env, what string, total uint64) *progress {
	p := &progress{what: what, total: total, shownAt: time.Now()}
	if cli.IsInteractive(c.ErrOut) {
		p.errOut = c.ErrOut
	}
	return p
}

// progressEvery is the time between two repaints.
const progressEvery = 200 * time.Millisecond

// Write counts the bytes.
func (p *progress) Write(data []byte) (int, error) {
	p.done += uint64(len(data))
	if p.errOut != nil && time.Since(p.shownAt) >= progressEvery {
		p.shownAt, p.shown = time.Now(), true
		total := ""
		if p.total > 0 {
			total = " of " + bytesText(p.total)
		}
		// A failure cannot be reported.
		_, _ = fmt.Fprintf(p.errOut, "\r\x1b[K%s %s%s", p.what, bytesText(p.done), total)
	}
	return len(data), nil
}

func (p *progress) clearLine() {
	if p.shown {
		fmt.Fprint(p.errOut, "\r\x1b[K") //nolint:errcheck // a failure cannot be reported
	}
}

func bytesText(n uint64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
