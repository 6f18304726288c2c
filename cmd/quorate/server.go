package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/rpc"
)

func newServerCmd() *cobra.Command {
	command := &cobra.Command{
		Use:   "server",
		Short: "Run one node of a cluster",
		Long: `Run one node of a cluster until SIGTERM or SIGINT, which hand the leadership over and stop it cleanly.

Settings come from flags, from QUORATE_… environment variables (--data-dir is QUORATE_DATA_DIR) and from the YAML file
that --config names, whose keys are the names of the flags; the first of them that names a setting wins. SIGHUP reads
them again and changes what can change while the server runs; docs/server.md says which that is.`,
		Example: `  quorate server --id n1 --data-dir /var/lib/quorate
  quorate server --id n1 --data-dir d1 --http-addr 127.0.0.1:7101 --raft-addr 127.0.0.1:7201 --gossip-addr 127.0.0.1:7301 \
    --bootstrap-expect 3 --join 127.0.0.1:7301,127.0.0.1:7302,127.0.0.1:7303`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			load := sources(c.Flags())
			s, err := load()
			if err != nil {
				return err
			}
			if check, err := c.Flags().GetBool(checkFlag); check || err != nil {
				return errors.Join(err, checkServer(s, c.OutOrStdout()))
			}
			remembered := new(lately)
			logger := newLogger(io.MultiWriter(c.ErrOrStderr(), remembered), s)
			return runServer(c.Context(), load, s, remembered, logger)
		},
	}
	addServerFlags(command.Flags())
	return command
}

// checkServer says whether a node would take the settings.
func checkServer(s settings, out io.Writer) error {
	if err := s.config(nil).WithDefaults().Validate(); err != nil {
		return usagef("%s", oneLine(err))
	}
	if _, err := openSecurity(s, hclog.NewNullLogger()); err != nil {
		return usagef("%s", oneLine(err))
	}
	_, err := fmt.Fprintf(out, "The settings of %s are good.\n", s.ID)
	return err
}

func newLogger(to io.Writer, s settings) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: s.ID, Level: hclog.LevelFromString(s.LogLevel), Output: to, JSONFormat: s.LogJSON,
	})
}

// logLevel makes the logger follow the setting.
func logLevel(logger hclog.Logger) reloadStep {
	return reloadStep{"log-level", func(s settings) error {
		logger.SetLevel(hclog.LevelFromString(s.LogLevel))
		return nil
	}}
}

// runServer runs one node until ctx ends or the node finds that it cannot go on.
func runServer(ctx context.Context, load func() (settings, error), s settings, remembered *lately, logger hclog.Logger) error {
	measured, err := newTelemetry(remembered)
	if err != nil {
		return err
	}
	if measured.tracing, err = startTracing(ctx, s, os.Getenv, logger); err != nil {
		return err
	}
	stopProfiles, err := serveProfiles(ctx, s, logger)
	if err != nil {
		return err
	}
	defer stopProfiles()
	running, err := startNode(ctx, s, measured, logger)
	if err != nil {
		return err
	}
	logger.Info("serving", "api", running.url, "boskos", running.boskos.url, "data", s.DataDir, "version", version)
	reload := reloading{load: load, now: s, log: logger, steps: append(running.security.steps(), logLevel(logger))}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go reload.follow(following)
	fault := running.wait(ctx)
	if fault == nil {
		logger.Info("stopping")
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = running.stop(bounded)
	measured.tracing.stop(bounded, logger)
	if fault != nil {
		return fmt.Errorf("node %s had to stop: %w", s.ID, fault)
	}
	return err
}

// serveProfiles serves pprof on an address of its own, because profiles tell more than clients should know.
func serveProfiles(ctx context.Context, s settings, logger hclog.Logger) (stop func(), err error) {
	if s.PprofAddr == "" {
		return func() {}, nil
	}
	listener, err := listenHTTP(ctx, s.PprofAddr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	browsers := rpc.Browsers{LoopbackOnly: !s.Insecure} // nothing asks here who calls
	server := &http.Server{Handler: browsers.Protect(mux, nil), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("profiles are not served any more", "error", err)
		}
	}()
	return func() { _ = server.Close() }, nil // nothing is lost with a profile that was cut
}
