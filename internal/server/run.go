package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/rpc"
)

// RunOptions are what [Run] needs. All fields are required.
type RunOptions struct {
	// Load reads the settings: once at the start, and again at each SIGHUP. It returns valid settings or an error.
	Load func() (Settings, error)
	// Version is the version that the node reports to other members and callers.
	Version string
	// Log takes the log, one line in each write.
	Log io.Writer
}

// Run runs one node as the process "quorate server run" does: with a log, metrics of the process, traces, profiles, and
// settings that SIGHUP reads again. It returns nil when ctx ends and the node has stopped in order, and an error when
// the node cannot start, stop, or go on.
//
// A process calls it at most once, because metrics of raft, traces and signals belong to the whole process. [Start] has
// none of them and may be called for several nodes.
func Run(ctx context.Context, o RunOptions) error {
	// Without a receiver SIGHUP would end the process, or be lost where it is ignored, until the node has started.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s, err := o.Load()
	if err != nil {
		return err
	}
	recent := new(logBuffer)
	logger := s.NewLogger(io.MultiWriter(o.Log, recent))
	tuneCollector(s, os.Getenv, logger)
	metrics, err := NewTelemetry(s.ClusterName)
	if err != nil {
		return err
	}
	p := Process{Version: o.Version, Log: logger, Telemetry: metrics, recent: recent}
	if p.tracing, err = startTracing(ctx, s, o.Version, os.Getenv, logger); err != nil {
		return err
	}
	stopProfiles, err := serveProfiles(ctx, s, logger)
	if err != nil {
		return err
	}
	defer stopProfiles()
	node, err := Start(ctx, s, p)
	if err != nil {
		return err
	}
	logger.Info("serving", "api", node.URL(), "boskos", node.BoskosURL(), "metrics", node.MetricsURL(),
		"data", s.DataDir, "version", o.Version)
	reload := reloader{
		load: o.Load, now: s, log: logger,
		steps: append(node.security.reloadSteps(), reloadLogLevel(logger)),
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go reload.follow(following, hangups)
	supervised := newSupervision(node.Node().Status, logger)
	supervised.serving()
	go supervised.watch(following)
	fault := node.Wait(ctx)
	if fault == nil {
		logger.Info("stopping")
	}
	supervised.stopping()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
	defer cancel()
	err = node.Stop(bounded)
	p.tracing.flush(bounded, logger)
	if fault != nil {
		return fmt.Errorf("node %s had to stop: %w", s.ID, fault)
	}
	return err
}

// serveProfiles serves pprof on an address of its own, because profiles tell more than clients should know.
func serveProfiles(ctx context.Context, s Settings, logger hclog.Logger) (stop func(), err error) {
	if s.PprofAddr == "" {
		return func() {}, nil
	}
	listener, err := listenAPI(ctx, s.PprofAddr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	browsers := rpc.Browsers{LoopbackOnly: !s.Insecure} // profiles have no authentication
	server := &http.Server{Handler: browsers.Protect(mux, nil), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("profiles are not served any more", "error", err)
		}
	}()
	return func() { _ = server.Close() }, nil // a profile that is cut short loses nothing
}
