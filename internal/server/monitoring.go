package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/rpc"
)

const (
	// monitoringConnections bounds the open connections of the monitoring address, monitoringShare those from one
	// address: a Prometheus needs one, and others must find a place beside one caller that takes all it can.
	monitoringConnections = 64
	monitoringShare       = 16
	// monitoringHeader bounds the bytes of the headers of a request, monitoringPatience the time to send or take one.
	monitoringHeader   = 16 << 10
	monitoringPatience = 10 * time.Second
	monitoringIdle     = 2 * time.Minute
)

// monitoringServer serves /metrics, /livez and /readyz in plain text and without looking at the caller, on an address
// of its own; nil if none was asked for. It takes nothing from the limits of the API, so that its callers, who have no
// credential, cannot keep clients away.
type monitoringServer struct {
	server   *http.Server
	listener net.Listener
	ended    chan struct{}
}

// listenMonitoring is nil if the address is empty.
func listenMonitoring(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // not asked for
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics on %s: %w; choose another address with --metrics-addr", address, err)
	}
	return listener, nil
}

// startMonitoring serves until close. A node that can no longer be monitored goes on: the log says so, and Prometheus
// misses it.
func startMonitoring(listener net.Listener, handler http.Handler, logger hclog.Logger) *monitoringServer {
	if listener == nil {
		return nil
	}
	// A page of another site must not read the metrics through the browser of a user of this machine.
	browsers := rpc.Browsers{LoopbackOnly: IsLoopback(listener.Addr().String())}
	m := &monitoringServer{
		listener: listener, ended: make(chan struct{}),
		server: &http.Server{
			Handler: browsers.Protect(handler, nil), MaxHeaderBytes: monitoringHeader,
			ReadHeaderTimeout: monitoringPatience, ReadTimeout: monitoringPatience, WriteTimeout: 2 * monitoringPatience,
			IdleTimeout: monitoringIdle,
			ErrorLog:    logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		},
	}
	limitMonitoring(m.server)
	go func() {
		defer close(m.ended)
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("metrics are not served on their address any more", "address", listener.Addr(), "error", err)
		}
	}()
	return m
}

func limitMonitoring(server *http.Server) {
	var (
		mu   sync.Mutex
		open = map[net.Conn]string{}
		from = map[string]int{}
	)
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String()) // an address without a port is one caller too
		mu.Lock()
		defer mu.Unlock()
		if len(open) >= monitoringConnections || from[host] >= monitoringShare {
			_ = c.Close() // it is new: no request is on it
			return ctx
		}
		open[c] = host
		from[host]++
		return ctx
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateClosed {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		host, counted := open[c]
		if !counted {
			return
		}
		delete(open, c)
		if from[host]--; from[host] == 0 {
			delete(from, host)
		}
	}
}

// url is empty if the metrics are not served.
func (m *monitoringServer) url() string {
	if m == nil {
		return ""
	}
	return "http://" + m.listener.Addr().String()
}

// close cuts scrapes off: a page that is cut short loses nothing.
func (m *monitoringServer) close() error {
	if m == nil {
		return nil
	}
	err := m.server.Close()
	<-m.ended
	return err
}
