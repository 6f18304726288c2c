package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/compat/boskos"
	"github.com/quorate/quorate/rpc"
)

// boskosDoor serves the protocol of Boskos on an address of its own: its clients replace the path of the URL.
type boskosDoor struct {
	server *http.Server
	url    string
	// failed tells why the door does not serve any more; nothing comes from it after close.
	failed chan error
	ended  chan struct{}
}

// listenBoskos is nil if nobody wants the door.
func listenBoskos(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // nothing was asked for
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve Boskos's clients on %s: %w; choose another address with --boskos-addr", address, err)
	}
	return listener, nil
}

// openBoskos serves until close. A nil listener makes a door that nobody comes through.
func openBoskos(
	listener net.Listener, api *rpc.Server, registerer prometheus.Registerer, logger hclog.Logger,
) (*boskosDoor, error) {
	door := &boskosDoor{failed: make(chan error, 1), ended: make(chan struct{})}
	if listener == nil {
		return door, nil
	}
	var front *boskos.Handler
	handler := api.FrontEnd(func(s rpc.Services) http.Handler {
		front = boskos.NewHandler(boskos.API{Allocations: s.Allocations, Items: s.Items, Trees: s.Trees}, boskos.Options{
			Notice: func(err error) { logger.Warn("counting Boskos's resources for the metrics", "error", err) },
		})
		return front
	})
	if err := registerer.Register(front); err != nil {
		return nil, fmt.Errorf("registering the metrics of Boskos: %w", err)
	}
	door.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	api.Bound(door.server)
	go func() {
		defer close(door.ended)
		if err := door.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			door.failed <- fmt.Errorf("serving Boskos's clients on %s: %w", listener.Addr(), err)
		}
	}()
	return door, nil
}

// boskosFarewell is how long calls may take to their end when the door closes.
const boskosFarewell = 3 * time.Second

// close takes no more calls and waits for those that are there; those that wait for a leader are cut in the end. The door
// closes while the node still works, so that calls end well, and callers go to another node.
func (d *boskosDoor) close(ctx context.Context) error {
	if d.server == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, boskosFarewell)
	defer cancel()
	err := d.server.Shutdown(bounded)
	if err != nil {
		err = d.server.Close()
	}
	<-d.ended
	return err
}
