package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
)

// boskosServer serves the protocol of Boskos on an address of its own: its clients replace the path of the URL, so they
// cannot share one.
type boskosServer struct {
	server *http.Server // nil if the protocol is not served
	url    string
	// failed receives why it does not serve any more; nothing after close.
	failed chan error
	ended  chan struct{}
}

// listenBoskos is nil if the address is empty.
func listenBoskos(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // not asked for
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve Boskos's clients on %s: %w; choose another address with --front-ends "+
			"boskos=HOST:PORT",
			address, err)
	}
	return listener, nil
}

// startBoskos does nothing without a listener.
func startBoskos(listener net.Listener, service *Service, logger hclog.Logger) *boskosServer {
	b := &boskosServer{failed: make(chan error, 1), ended: make(chan struct{})}
	if listener == nil {
		return b
	}
	b.server = &http.Server{
		Handler: service.boskos, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	service.api.LimitConnections(b.server)
	go func() {
		defer close(b.ended)
		if err := b.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			b.failed <- fmt.Errorf("serving Boskos's clients on %s: %w", listener.Addr(), err)
		}
	}()
	return b
}

// boskosDrainTimeout bounds how long calls may take to end once the port is closing.
const boskosDrainTimeout = 3 * time.Second

// close takes no more calls and waits for those under way; those that still wait for a leader in the end are cut off.
// It comes before the node stops, so that calls end well and callers go to another node.
func (b *boskosServer) close(ctx context.Context) error {
	if b.server == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, boskosDrainTimeout)
	defer cancel()
	err := b.server.Shutdown(bounded)
	if err != nil {
		err = b.server.Close()
	}
	<-b.ended
	return err
}
