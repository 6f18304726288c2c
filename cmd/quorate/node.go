package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/activity"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/rpc"
)

// stopTimeout bounds how long a node may take to stop in an orderly way.
const stopTimeout = 15 * time.Second

// runningNode is a node with its API.
type runningNode struct {
	node   *cluster.Node
	api    *rpc.Server
	boskos *boskosDoor
	url    string
	// served is how serving clients ended, servedNodes how serving other nodes did.
	served, servedNodes chan error
	// forget ends the memory of what goes on and periodic backups, unfollow the watch over the certificates.
	forget, unfollow func()
	security         *security
}

// startNode opens a node and serves its API. It returns before the node knows a leader.
func startNode(ctx context.Context, s settings, measured *telemetry, logger hclog.Logger) (*runningNode, error) {
	secured, err := openSecurity(s, logger)
	if err != nil {
		return nil, err
	}
	// The ports first: if one is in use, nothing else has happened yet.
	l, err := listen(ctx, s)
	if err != nil {
		return nil, err
	}
	config := s.config(logger)
	if config.Observer, err = host.NewObserver(measured.labelled); err != nil {
		return nil, errors.Join(err, l.close())
	}
	node, network, err := host.OpenSecured(ctx, config, secured.forPeers())
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	r, err := serveNode(node, network, l, s, secured, measured, logger)
	if err != nil {
		return nil, errors.Join(err, l.close(), node.Shutdown(ctx))
	}
	return r, nil
}

// listeners are the ports of a node that clients know; boskos may be nil.
type listeners struct{ api, boskos net.Listener }

func listen(ctx context.Context, s settings) (l listeners, err error) {
	if l.api, err = listenHTTP(ctx, s.HTTPAddr); err != nil {
		return l, err
	}
	if l.boskos, err = listenBoskos(ctx, s.BoskosAddr); err != nil {
		return l, errors.Join(err, l.close())
	}
	return l, nil
}

func (l listeners) close() error {
	err := l.api.Close()
	if l.boskos != nil {
		err = errors.Join(err, l.boskos.Close())
	}
	return err
}

func listenHTTP(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API on %s: %w; another process may be using the port: stop it, or choose another with --http-addr", address, err)
	}
	return listener, nil
}

func serveNode(
	node *cluster.Node, network *host.Network, l listeners, s settings, secured *security, measured *telemetry, logger hclog.Logger,
) (*runningNode, error) {
	registerer := measured.labelled
	if err := errors.Join(watch(registerer, node), secured.measure(registerer)); err != nil {
		return nil, err
	}
	recorder, err := activity.New(activity.Config{Node: node, Logger: logger.Named("activity"), Registerer: registerer})
	if err != nil {
		return nil, err
	}
	api, err := rpc.New(rpc.Config{
		Node: node, ClusterName: s.ClusterName, Logger: logger.Named("rpc"), Metrics: measured.page(), Registerer: registerer,
		FrontEnds: frontEnds, Security: secured.forCalls(), Activity: rpc.NewActivity(node, recorder),
		Traces: measured.tracing.spans(), Diagnoses: diagnoses(node, s, measured),
		Limits: s.limits(), Backups: node, Network: network, Browsers: s.browsers(),
	})
	if err != nil {
		return nil, err
	}
	node.SetRemoteReadIndex(api.RemoteReadIndex)
	node.SetColleagues(api)
	door, err := openBoskos(secured.listener(l.boskos), api, registerer, logger.Named("boskos"))
	if err != nil {
		return nil, err
	}
	saving, err := newBackups(s, node, registerer, logger.Named("backups"))
	if err != nil {
		return nil, err
	}
	r := &runningNode{
		node: node, api: api, boskos: door, url: secured.url(l.api), served: make(chan error, 1), servedNodes: make(chan error, 1),
		forget: background(recorder.Run, saving.run), security: secured, unfollow: secured.follow(),
	}
	if l.boskos != nil {
		door.url = secured.url(l.boskos)
	}
	go func() { r.served <- api.Serve(secured.listener(l.api)) }()
	go func() { r.servedNodes <- api.ServeNodes() }()
	return r, nil
}

// background lets loops run until they are told to stop.
func background(loops ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, loop := range loops {
		group.Go(func() { loop(ctx) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// wait returns nil when ctx ends, and otherwise why the node cannot go on.
func (r *runningNode) wait(ctx context.Context) error {
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
		return r.waitClosed(ctx)
	case err := <-r.boskos.failed:
		return err
	}
}

// waitClosed waits further once the node has closed its port and tells why by itself; one in quarantine goes on until it is
// told to stop.
func (r *runningNode) waitClosed(ctx context.Context) error {
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

// stop takes the node out of service: health and the door of Boskos's clients first, then the leadership goes to another
// node, and the API last, so that callers are told where to go until the end.
func (r *runningNode) stop(ctx context.Context) error {
	r.api.Drain()
	r.forget()
	r.unfollow()
	err := r.boskos.close(ctx)
	err = errors.Join(err, r.node.Shutdown(ctx))
	err = errors.Join(err, r.api.Shutdown(ctx))
	return errors.Join(err, <-r.served, <-r.servedNodes)
}

// ready waits until the node knows a leader and has caught up with it.
func (r *runningNode) ready(ctx context.Context) error {
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
