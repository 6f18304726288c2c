package operate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/fsm/backup"
)

type restoreOptions struct {
	*cli.Env
	yes, raiseLevel bool
}

func newSnapshotRestoreCmd(c *cli.Env) *cobra.Command {
	o := &restoreOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the whole state of a cluster with a backup",
		Long: `Replace the whole state of a running cluster, new or old, with that of a backup: all of it, on all
members, or nothing. Everything granted, released and configured since the backup is lost. Fences jump ahead, so
that no fencing token is given twice; leases get their full TTL again. The file is verified first, here and by the
leader. On a terminal the name of the cluster must be typed; elsewhere --yes confirms.

A backup may need a higher feature level than the cluster has, for example shortly after an upgrade. No older version
can take part after such a restore: raise the level first with quorate level raise, or pass --raise-level.`,
		Example: `  quorate snapshot restore quorate.backup
  quorate snapshot restore quorate.backup --yes --server 10.0.0.1:7101`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.runRestore(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "restore without asking")
	cmd.Flags().BoolVar(&o.raiseLevel, "raise-level", false,
		"raise the feature level of the cluster if the backup needs it")
	return cmd
}

func (o *restoreOptions) runRestore(ctx context.Context, path string) error {
	contents, err := readBackup(path)
	if err != nil {
		return err
	}
	quorate, limited, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	status, err := quorate.Cluster.GetStatus(limited, &adminv1.GetStatusRequest{})
	if err != nil {
		return err
	}
	if err := o.checkConfirmation(status.GetClusterName(), contents); err != nil {
		return err
	}
	o.Patient = true
	answer, err := o.sendBackup(ctx, quorate, path, status.GetClusterName())
	if client.MayBeDone(err) {
		return fmt.Errorf("%w; the state may have been replaced nevertheless: check with `quorate status`, or restore "+
			"again, which is safe", err)
	}
	if err != nil {
		return err
	}
	return o.Print(answer, func(p *cli.Page) error {
		p.Linef("cluster %s has the state of the backup since index %d: revision %d, fences beyond %d",
			status.GetClusterName(), answer.GetIndex(), answer.GetRevision(), answer.GetFence())
		return nil
	})
}

func (o *restoreOptions) checkConfirmation(name string, contents backup.Contents) error {
	if o.yes {
		return nil
	}
	if !cli.IsTerminal(o.In) {
		return cli.Usagef("this replaces the whole state of cluster %s: confirm with --yes", name)
	}
	o.Messagef("This replaces the whole state of cluster %s with that of %s at %s (index %d, %d allocations "+
		"held).\nType the name of the cluster to go on:",
		name, contents.Cluster, time.UnixMilli(contents.TakenMs).UTC().Format(time.RFC3339), contents.Index,
		contents.Counts.Held)
	line, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && line == "" {
		return fmt.Errorf("nothing was typed, and nothing was changed: %w", err)
	}
	if typed := strings.TrimSpace(line); typed != name {
		return cli.Usagef("you typed %q, but the cluster is %q; nothing was changed", typed, name)
	}
	return nil
}

func (o *restoreOptions) sendBackup(
	ctx context.Context, quorate *client.Client, path, name string,
) (*adminv1.RestoreResponse, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := uint64(info.Size())
	shown := startProgress(o.Env, "sent", size)
	defer shown.clearLine()
	confirmation := &adminv1.RestoreConfirmation{ClusterName: name, Size: size, RaiseLevel: o.raiseLevel}
	return quorate.RestoreBackup(ctx, confirmation, &shownReader{file, shown})
}

type shownReader struct {
	*os.File

	shown *progress
}

// Read counts the bytes.
func (r *shownReader) Read(data []byte) (int, error) {
	n, err := r.File.Read(data)
	_, _ = r.shown.Write(data[:n])
	return n, err
}

// Seek continues counting from the new position.
func (r *shownReader) Seek(offset int64, whence int) (int64, error) {
	at, err := r.File.Seek(offset, whence)
	r.shown.done = uint64(at)
	return at, err
}

var _ io.ReadSeeker = (*shownReader)(nil)
