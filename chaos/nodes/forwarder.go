package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// forwarder listens on loopback.
type forwarder struct {
	listener    net.Listener
	ctx         context.Context //nolint:containedctx // it ends with the forwarder
	cancel      context.CancelFunc
	dial        func(context.Context) (net.Conn, error)
	connections sync.WaitGroup
}

func newForwarder(dial func(context.Context) (net.Conn, error)) (*forwarder, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a forwarder: %w", err)
	}
	d := &forwarder{listener: listener, dial: dial}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.connections.Go(d.acceptLoop)
	return d, nil
}

func (d *forwarder) listenAddress() string { return d.listener.Addr().String() }

func (d *forwarder) acceptLoop() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		d.connections.Go(func() { d.forwardConn(conn) })
	}
}

// forwardConn connects a client with the node until either closes. If the node does not answer, the client is
// refused.
func (d *forwarder) forwardConn(caller net.Conn) {
	defer caller.Close() //nolint:errcheck // nothing is lost that TCP had promised
	node, err := d.dial(d.ctx)
	if err != nil {
		return
	}
	defer node.Close() //nolint:errcheck // nothing is lost that TCP had promised
	stop := context.AfterFunc(d.ctx, func() {
		_ = caller.Close()
		_ = node.Close()
	})
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() { copyStream(node, caller) })
	ways.Go(func() { copyStream(caller, node) })
	ways.Wait()
}

// copyStream copies until one side ends. A side that only stops sending may still receive; a broken one closes both.
func copyStream(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(*net.TCPConn)
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()
		_ = from.Close()
	}
}

func (d *forwarder) shutDown() error {
	d.cancel()
	err := d.listener.Close()
	d.connections.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
