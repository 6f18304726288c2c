//go:build unix

package operate

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type migrateLogOptions struct {
	*cli.Env
	dataDir, to string
}

func newLogConvertCmd(c *cli.Env) *cobra.Command {
	o := &migrateLogOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Convert the log of a stopped node to another log store",
		Long: `Convert the log in the data folder of a stopped node to another log store: wal (segment files) or bolt (the
bbolt file raft.db). The log is copied, every entry is read back and compared, one atomic write records the new log
store, and then the old log is removed. An interrupted command can be run again, and a server that is started instead
has the complete log either way.

The state and the membership of the node do not change, and the other nodes need not do the same.`,
		Example: `  quorate log convert --data-dir /var/lib/quorate --log-store wal`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return o.migrateLog() },
	}
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", dataDirHelp+" (required)")
	cmd.Flags().StringVar(&o.to, "log-store", "", "the new log `STORE`: wal or bolt (required)")
	return cmd
}

func (o *migrateLogOptions) migrateLog() error {
	for _, must := range []struct{ flag, value string }{{"data-dir", o.dataDir}, {"log-store", o.to}} {
		if must.value == "" {
			return cli.Usagef("--%s is missing; see quorate log convert --help", must.flag)
		}
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "log convert", Level: hclog.Warn, Output: o.ErrOut})
	done, err := host.MigrateLog(o.dataDir, o.to, logger)
	if err != nil {
		return fmt.Errorf("%w; the data folder keeps the log that it had", err)
	}
	return o.PrintValue(done, func(p *cli.Page) error { return migrationPage(p, done) })
}

func migrationPage(p *cli.Page, done host.Migration) error {
	if !done.Changed {
		p.Linef("Nothing was changed: the log of node %s of cluster %s is in %s already.", done.ID, done.Cluster, done.To)
		return nil
	}
	entries := "no entries"
	if done.Last > 0 {
		entries = fmt.Sprintf("%d to %d, copied and compared", done.First, done.Last)
	}
	err := p.Table([][]string{
		{"node", done.ID + " of cluster " + done.Cluster},
		{"log store before", done.From},
		{"log store now", done.To},
		{"log entries", entries},
	})
	p.Linef("")
	p.Linef("Done. Start this server as before, without log-store or with log-store %s.", done.To)
	return err
}
