//go:build unix

package node

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/server"
)

const checkFlag = "check"

func newServerCmd(env *cli.Env) *cobra.Command {
	command := &cobra.Command{
		Use:   "run",
		Short: "Run one node of a cluster",
		Long: `Run one node of a cluster until SIGTERM or SIGINT, which hand over the leadership and stop it cleanly.

Settings come from flags, from environment variables (--data-dir is QUORATE_SERVER_DATA_DIR) and from the YAML file that
--config names, whose keys are the names of the flags; flags override the environment, which overrides the file.
SIGHUP reads them again; docs/server.md lists the settings that change while the server runs.`,
		Example: `  quorate server run --id n1 --data-dir /var/lib/quorate
  quorate server run --id n1 --data-dir d1 --http-addr 127.0.0.1:7101 --raft-addr 127.0.0.1:7201 \
    --gossip-addr 127.0.0.1:7301 --bootstrap-expect 3 --join 127.0.0.1:7301,127.0.0.1:7302,127.0.0.1:7303`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			load := settingsLoader(c.Flags())
			check, err := c.Flags().GetBool(checkFlag)
			if err != nil {
				return err
			}
			if check {
				return checkServer(load, c.OutOrStdout())
			}
			return server.Run(c.Context(), server.RunOptions{Load: load, Version: env.Build.Version, Log: c.ErrOrStderr()})
		},
	}
	server.AddFlags(command.Flags())
	command.Flags().Bool(checkFlag, false, "check the settings, print what is wrong with them, and start nothing")
	return command
}

// settingsLoader returns a function that reads the settings from where this process takes them: the flags, the
// environment and the configuration file.
func settingsLoader(flags *pflag.FlagSet) func() (server.Settings, error) {
	return func() (server.Settings, error) {
		s, err := server.Load(flags, os.Environ())
		if err != nil {
			return server.Settings{}, cli.Usagef("%s", oneLine(err))
		}
		return s, nil
	}
}

func checkServer(load func() (server.Settings, error), out io.Writer) error {
	s, err := load()
	if err != nil {
		return err
	}
	if err := s.Preflight(); err != nil {
		return cli.Usagef("%s", oneLine(err))
	}
	_, err = fmt.Fprintf(out, "The settings of %s are valid.\n", s.ID)
	return err
}

// oneLine joins several faults in one line, because people grep for it.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
