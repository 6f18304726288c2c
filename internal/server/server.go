// Package server assembles a node of a cluster from its parts: data folder, raft and gossip (cluster/host), API
// (rpc), front ends of other systems (compat), certificates (pki), metrics, traces, backups and settings.
//
// Start reading at [Start]. [Settings] is everything that a node can be told; flags, environment variables and keys
// of the configuration file are made from it. [Run] is a node as a process, with a log and signals; [Start] a node
// inside another program; [NewService] only what a node serves, for programs that open the node and carry its calls
// themselves.
package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/internal/server/recovery"
)

// StopTimeout is enough time for [Server.Stop] on a machine that is not overloaded.
const StopTimeout = 15 * time.Second

// Process is what the nodes of one process share.
type Process struct {
	// Version is the version that the node reports to other members and callers.
	Version string
	// Log is required.
	Log hclog.Logger
	// Telemetry takes the metrics of the node. Nil gives each node a registry of its own, without the metrics of the
	// process.
	Telemetry *Telemetry
	// Dashboard has the files of the dashboard, read again for every request; nil for those in the binary.
	Dashboard fs.FS

	// note is what the node remembers of access, closed whether it serves no open cluster.
	note   recovery.Note
	closed bool

	tracing tracing
	recent  *logBuffer // nil if the log is not kept for diagnostics
}

// Server is one running node with its API.
type Server struct {
	node    *cluster.Node
	service *Service
	boskos  *boskosServer
	// monitoring serves the metrics on an address of their own.
	monitoring *monitoringServer
	security   *security
	url        string
	// served and servedNodes are how serving clients and serving other nodes ended.
	served, servedNodes chan error
	// stopLoops ends the loops of the service, stopRenewal the watch over the certificates, stopRecoveryWatch that over
	// recoveries of access.
	stopLoops, stopRenewal, stopRecoveryWatch func()
}

// Start opens the node that the settings describe and serves its API until [Server.Stop], which the caller must call.
// The settings must be valid, see [Settings.Validate]. Start returns before the node knows a leader;
// [Server.AwaitReady] waits for that. A node that cannot start leaves no port open and no data folder locked.
func Start(ctx context.Context, s Settings, p Process) (*Server, error) {
	secured, err := openSecurity(s, p.Log)
	if err != nil {
		return nil, err
	}
	// The ports come first: if one is in use, nothing else has happened yet.
	l, err := openListeners(ctx, s)
	if err != nil {
		return nil, err
	}
	if p.note, err = recovery.Folder(s.DataDir).Begin(); err != nil { // before the folder gets an identity
		return nil, errors.Join(err, l.close())
	}
	p.closed = decideClosed(s, p.note, p.Log)
	p.Telemetry = p.Telemetry.orPrivate(s.ClusterName)
	config := s.nodeConfig(p.Version, p.Log)
	if config.Observer, err = host.NewObserver(p.Telemetry.labelled); err != nil {
		return nil, errors.Join(err, l.close())
	}
	node, network, err := host.OpenSecured(ctx, config, secured.peerSecurity())
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	r, err := serveNode(node, network, l, s, secured, p)
	if err != nil {
		return nil, errors.Join(err, l.close(), node.Shutdown(ctx))
	}
	return r, nil
}

func serveNode(
	node *cluster.Node, network *host.Network, l listeners, s Settings, secured *security, p Process,
) (*Server, error) {
	if err := secured.registerMetrics(p.Telemetry.labelled); err != nil {
		return nil, err
	}
	service, err := NewService(node, s, p, Transport{
		Security: secured.apiSecurity(), CertificateEnds: secured.certificateEnds(), Network: network,
	})
	if err != nil {
		return nil, err
	}
	r := &Server{
		node: node, service: service, security: secured, url: secured.listenerURL(l.api),
		boskos: startBoskos(secured.encryptListener(l.boskos), service, p.Log.Named("boskos")),
		served: make(chan error, 1), servedNodes: make(chan error, 1),
		stopLoops: startLoop(service.RunLoops), stopRenewal: secured.startRenewal(),
		stopRecoveryWatch: startRecoveryWatch(node, s, p.note, p.Log),
	}
	if l.boskos != nil {
		r.boskos.url = secured.listenerURL(l.boskos)
	}
	r.monitoring = startMonitoring(l.monitoring, service.api.MonitoringHandler(), p.Log.Named("monitoring"))
	go func() { r.served <- service.api.Serve(secured.encryptListener(l.api)) }()
	go func() { r.servedNodes <- service.api.ServeNodes() }()
	return r, nil
}

// startLoop returns a stop that waits until the loop has ended.
func startLoop(loop func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { loop(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// Node is the node that is served.
func (r *Server) Node() *cluster.Node { return r.node }

// URL is where clients reach the API.
func (r *Server) URL() string { return r.url }

// BoskosURL is where clients of Boskos are served; empty if they are not.
func (r *Server) BoskosURL() string { return r.boskos.url }

// MetricsURL is where the metrics are served on an address of their own; empty if they are not.
func (r *Server) MetricsURL() string { return r.monitoring.url() }

// Wait blocks until ctx ends, and returns nil, or until the node cannot go on, and returns the reason. The caller must
// call Stop in both cases.
func (r *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.node.Done():
		return r.node.Err()
	case err := <-r.served:
		r.served <- nil
		return err
	case err := <-r.servedNodes:
		r.servedNodes <- nil
		if err != nil {
			return err
		}
		// The node has closed its port for other nodes. It reports the reason through Done, unless it is in quarantine: then
		// it continues until it is stopped.
		return r.waitClosed(ctx)
	case err := <-r.boskos.failed:
		return err
	}
}

// waitClosed is Wait for a node that has closed its port for other nodes.
func (r *Server) waitClosed(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.node.Done():
		return r.node.Err()
	case err := <-r.served:
		r.served <- nil
		return err
	case err := <-r.boskos.failed:
		return err
	}
}

// Stop takes the node out of service until ctx ends: the health checks and Boskos's port first, then it hands over the
// leadership, and the API comes last, so that callers are sent to the new leader until the end.
func (r *Server) Stop(ctx context.Context) error {
	r.service.api.Drain()
	r.stopLoops()
	r.stopRenewal()
	r.stopRecoveryWatch()
	err := r.boskos.close(ctx)
	err = errors.Join(err, r.node.Shutdown(ctx))
	err = errors.Join(err, r.service.api.Shutdown(ctx), r.monitoring.close())
	return errors.Join(err, <-r.served, <-r.servedNodes)
}

// AwaitReady waits until the node knows a leader and has caught up with it.
func (r *Server) AwaitReady(ctx context.Context) error {
	for {
		err := r.node.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.node.Done():
			return r.node.Err()
		case <-ctx.Done():
			return fmt.Errorf("the node is not ready: %w", err)
		}
	}
}

// listeners are the ports that clients and monitoring know; boskos and monitoring may be nil.
type listeners struct{ api, boskos, monitoring net.Listener }

func openListeners(ctx context.Context, s Settings) (l listeners, err error) {
	if l.api, err = listenAPI(ctx, s.HTTPAddr); err != nil {
		return l, err
	}
	if l.boskos, err = listenBoskos(ctx, s.boskosAddr()); err != nil {
		return l, errors.Join(err, l.close())
	}
	if l.monitoring, err = listenMonitoring(ctx, s.MetricsAddr); err != nil {
		return l, errors.Join(err, l.close())
	}
	return l, nil
}

func (l listeners) close() error {
	var faults []error
	for _, listener := range []net.Listener{l.api, l.boskos, l.monitoring} {
		if listener != nil {
			faults = append(faults, listener.Close())
		}
	}
	return errors.Join(faults...)
}

func listenAPI(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API on %s: %w; another process may be using the port: stop it, or "+
			"choose another with --http-addr", address, err)
	}
	return listener, nil
}
