package operate

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
)

func newSnapshotShowCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Verify a backup and show what it contains, without a server",
		Long: `Read a backup to its end, as a restore would: its digests, every record, every invariant of the state.
A damaged backup is refused with a description of the damage. No server is asked.`,
		Example: `  quorate snapshot show quorate.backup
  quorate snapshot show quorate.backup -o json | jq .counts`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			contents, err := readBackup(args[0])
			if err != nil {
				return err
			}
			return c.PrintValue(contents, func(p *cli.Page) error { return p.Table(backupRows(contents)) })
		},
	}
}

func readBackup(path string) (backup.Contents, error) {
	file, err := os.Open(path)
	if err != nil {
		return backup.Contents{}, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	contents, err := backup.Read(file, fsm.Options{}, nil)
	if err != nil {
		return backup.Contents{}, cli.Usagef("%s: %v", path, err)
	}
	return contents, nil
}

func backupRows(b backup.Contents) [][]string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	taken := "at " + time.UnixMilli(b.TakenMs).UTC().Format(time.RFC3339) + " on " + b.Node
	if b.Stale {
		taken += ", without asking the leader"
	}
	return [][]string{
		{"cluster", b.Cluster},
		{"taken", taken},
		{"version", b.Version},
		{"feature level", number(uint64(b.Format))},
		{"index", number(b.Index)},
		{"term", number(b.Term)},
		{"ledger time", (time.Duration(b.LedgerTimeMs) * time.Millisecond).String()},
		{"revision", number(b.Revision)},
		{"last fence", number(b.Fence)},
		{"trees", fmt.Sprintf("%d with %d nodes", b.Counts.Trees, b.Counts.Nodes)},
		{"allocations", fmt.Sprintf("%d held, %d waiting, %d ended", b.Counts.Held, b.Counts.Waiting, b.Counts.Ended)},
		{"items", number(b.Counts.Items)},
		{"history", fmt.Sprintf("%d revisions, %d events", b.Counts.Revisions, b.Counts.Events)},
		{"size", bytesText(uint64(b.Size))},
		{"sha256", b.SHA256},
	}
}
