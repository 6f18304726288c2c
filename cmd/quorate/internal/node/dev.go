//go:build unix

package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/internal/server"
)

// devPatience bounds the time until a new cluster has a leader.
const devPatience = 30 * time.Second

// Offsets of the other ports from the first API port. They are fixed, because nodes must find each other again when the
// data folder is reused.
const (
	raftPortOffset   = 100
	gossipPortOffset = 200
)

type devOptions struct {
	dataDir, httpAddr, logLevel string
	boskosConfig                string
	version, uiDir              string
	frontEnds                   []string
	nodes                       int
	insecure, guarded, demo     bool
}

func newDevCmd(env *cli.Env) *cobra.Command {
	o := devOptions{version: env.Build.Version}
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run a local server or cluster for experiments",
		Long: `Run a single node, or several in one process, for experiments.

With --guarded the cluster is guarded at the first start, and a token of an administrator is printed, once.

Without --data-dir the data is in a temporary folder that is removed at the end. The nodes use the port of
--http-addr and the following ones, and the ports 100 and 200 above for the traffic between them.

` + demoHelp,
		Example: "  quorate server dev\n  quorate server dev --members 3 --data-dir ./play\n" +
			"  quorate server dev --front-ends boskos=127.0.0.1:8080 --boskos-config boskos.yaml",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.demo {
				return runDemo(c)
			}
			return runDev(c.Context(), o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	command.Flags().StringVar(&o.dataDir, "data-dir", "",
		"folder that keeps the data (default: a temporary one, removed at the end)")
	command.Flags().StringVar(&o.httpAddr, "http-addr", "127.0.0.1:7101",
		"address of the API of the first node; port 0 picks free ports")
	command.Flags().IntVar(&o.nodes, "members", 1, "number of members: 1, 3, 5 or 7")
	command.Flags().StringSliceVar(&o.frontEnds, "front-ends", nil,
		"protocols of other systems to serve: boskos=HOST:PORT, keystone, yunikorn; the other nodes serve Boskos's clients "+
			"at the ports that follow, port 0 picks free ports")
	command.Flags().StringVar(&o.boskosConfig, "boskos-config", "",
		"configuration `FILE` of Boskos to apply at the start")
	command.Flags().BoolVar(&o.insecure, "insecure", false, "serve other machines too, in plain text")
	command.Flags().BoolVar(&o.guarded, "guarded", false,
		"guard the cluster, and print a token of an administrator")
	command.Flags().BoolVar(&o.demo, "demo", false, "show a cluster at work that loses its leader and nothing else")
	command.Flags().StringVar(&o.uiDir, "ui-dir", "",
		"folder with the files of the dashboard, read again for each request; those in the binary if empty")
	command.Flags().StringVar(&o.logLevel, "log-level", "error",
		"minimum level to log: trace, debug, info, warn, error or off")
	return command
}

func runDev(ctx context.Context, o devOptions, out, logs io.Writer) (err error) {
	resources, err := o.readBoskos(logs)
	if err != nil {
		return err
	}
	dir, lasting := o.dataDir, o.dataDir != ""
	if !lasting {
		if dir, err = os.MkdirTemp("", "quorate-dev-"); err != nil {
			return fmt.Errorf("making a folder for the data: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	nodes, err := devSettings(ctx, o, dir)
	if err != nil {
		return cli.Usagef("%s", oneLine(err))
	}
	if err := makeDevFiles(nodes[0]); err != nil {
		return err
	}
	logger := server.Settings{LogLevel: o.logLevel}.NewLogger(logs)
	running, err := startDev(ctx, nodes, o, logger)
	defer func() {
		logger.SetLevel(hclog.Off) // nodes that stop one after the other log errors about each other
		err = errors.Join(err, stopDev(ctx, running))
	}()
	if err != nil {
		return err
	}
	if err := readyDev(ctx, running); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted before it was ready
		}
		return err
	}
	if err := applyBoskos(ctx, running, resources); err != nil {
		return err
	}
	printDev(out, running, dir, lasting)
	if o.guarded {
		if err := guardDev(ctx, out, running, nodes[0].BootstrapSecret); err != nil {
			return err
		}
	}
	printCommands(out, running)
	return waitDev(ctx, running)
}

// devCluster is the name of the cluster of all nodes.
const devCluster = "dev"

func devSettings(ctx context.Context, o devOptions, dir string) ([]server.Settings, error) {
	addresses, err := devAddresses(ctx, o.httpAddr, o.nodes)
	if err != nil {
		return nil, err
	}
	frontEnds, err := devFrontEnds(o.frontEnds, o.nodes)
	if err != nil {
		return nil, err
	}
	list := make([]server.Settings, o.nodes)
	for i := range list {
		id := fmt.Sprintf("n%d", i+1)
		s := server.DefaultSettings()
		s.ID, s.ClusterName, s.DataDir, s.LogLevel = id, devCluster, filepath.Join(dir, id), o.logLevel
		s.HTTPAddr, s.RaftAddr, s.GossipAddr = addresses[i], addresses[o.nodes+i], addresses[2*o.nodes+i]
		s.BootstrapExpect, s.Join = o.nodes, addresses[2*o.nodes:]
		s.Insecure, s.UI, s.FrontEnds = o.insecure, "write", frontEnds[i]
		if o.guarded {
			s.BootstrapSecret = filepath.Join(dir, "bootstrap.secret")
		}
		if !server.IsLoopback(s.GossipAddr) {
			s.GossipKeysFile = filepath.Join(dir, "gossip.keys")
		}
		list[i] = s
		if err := list[i].Validate(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// makeDevFiles writes a gossip key and a bootstrap secret, unless the files exist or none is needed.
func makeDevFiles(s server.Settings) error {
	if err := makeDevFile(s.GossipKeysFile, pki.NewGossipKey()); err != nil {
		return fmt.Errorf("making a gossip key: %w", err)
	}
	if err := makeDevFile(s.BootstrapSecret, rand.Text()+rand.Text()); err != nil {
		return fmt.Errorf("making a bootstrap secret: %w", err)
	}
	return nil
}

func makeDevFile(path, line string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// devAddresses are the API addresses of all nodes, then those for raft, then those for gossip.
func devAddresses(ctx context.Context, first string, nodes int) ([]string, error) {
	if nodes < 1 || nodes > 7 {
		return nil, fmt.Errorf("nodes is %d: allowed are 1, 3, 5 and 7", nodes)
	}
	host, text, err := net.SplitHostPort(first)
	if err != nil {
		return nil, fmt.Errorf("http-addr is %q: allowed is host:port", first)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port+gossipPortOffset+nodes > 65536 {
		return nil, fmt.Errorf(
			"http-addr is %q: allowed are ports up to %d, because dev uses the ports above too", first,
			65536-gossipPortOffset-nodes)
	}
	if port == 0 {
		return FreePorts(ctx, 3*nodes)
	}
	var addresses []string
	for _, offset := range []int{0, raftPortOffset, gossipPortOffset} {
		for i := range nodes {
			addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(port+offset+i)))
		}
	}
	return addresses, nil
}

// startDev returns with an error the nodes that were started before, which the caller must stop.
func startDev(
	ctx context.Context, nodes []server.Settings, o devOptions, logger hclog.Logger,
) ([]*server.Server, error) {
	metrics, err := server.NewTelemetry(devCluster)
	if err != nil {
		return nil, err
	}
	var dashboard fs.FS
	if o.uiDir != "" {
		dashboard = os.DirFS(o.uiDir)
	}
	var running []*server.Server
	for _, s := range nodes {
		r, err := server.Start(ctx, s, server.Process{
			Version: o.version, Log: logger.Named(s.ID), Telemetry: metrics.ForNode(s.ID), Dashboard: dashboard,
		})
		if err != nil {
			return running, err
		}
		running = append(running, r)
	}
	return running, nil
}

func readyDev(ctx context.Context, running []*server.Server) error {
	ctx, cancel := context.WithTimeout(ctx, devPatience)
	defer cancel()
	for _, r := range running {
		if err := r.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitDev returns nil when ctx ends, or the reason why a node cannot go on.
func waitDev(ctx context.Context, running []*server.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, len(running))
	for _, r := range running {
		go func() { ends <- r.Wait(ctx) }()
	}
	return <-ends
}

func stopDev(ctx context.Context, running []*server.Server) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.StopTimeout)
	defer cancel()
	var faults []error
	for _, r := range running {
		faults = append(faults, r.Stop(bounded))
	}
	return errors.Join(faults...)
}

func printDev(out io.Writer, running []*server.Server, dir string, lasting bool) {
	fate := "removed at the end"
	if lasting {
		fate = "kept"
	}
	var doors strings.Builder
	for _, r := range running {
		if r.BoskosURL() != "" {
			fmt.Fprintf(&doors, "Clients of Boskos: --server-url %s\n", r.BoskosURL())
		}
	}
	_, _ = fmt.Fprintf(out, `Quorate serves at %s
%sData: %s (%s). Ctrl-C stops it.
`, strings.Join(devURLs(running), ", "), doors.String(), dir, fate) // a closed output is not an error here
}

func devURLs(running []*server.Server) []string {
	urls := make([]string, len(running))
	for i, r := range running {
		urls[i] = r.URL()
	}
	return urls
}

// printCommands prints the first commands to try. They come last: in a guarded cluster they need the token that is
// printed before them.
func printCommands(out io.Writer, running []*server.Server) {
	_, _ = fmt.Fprintf(out, `
Try, in another terminal:
  export QUORATE_SERVER=%s
  quorate apply -f examples/cern.yaml
  quorate allocate --id first --at cern:atlas/physics/simulation --amount cores=5
  quorate usage cern
`, strings.Join(devURLs(running), ",")) // a closed output is not an error here
}
