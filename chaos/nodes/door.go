package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// door passes connections to an address on loopback on to somewhere else.
type door struct {
	listener net.Listener
	ctx      context.Context //nolint:containedctx // it is the life of the door
	cancel   context.CancelFunc
	dial     func(context.Context) (net.Conn, error)
	passing  sync.WaitGroup
}

func newDoor(dial func(context.Context) (net.Conn, error)) (*door, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a door: %w", err)
	}
	d := &door{listener: listener, dial: dial}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.passing.Go(d.accept)
	return d, nil
}

func (d *door) address() string { return d.listener.Addr().String() }

func (d *door) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		d.passing.Go(func() { d.pass(conn) })
	}
}

// pass joins a caller with the node until either hangs up. A node that does not answer is one that refuses.
func (d *door) pass(caller net.Conn) {
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
	ways.Go(func() { carry(node, caller) })
	ways.Go(func() { carry(caller, node) })
	ways.Wait()
}

// carry copies until one side ends. A side that only stops sending may still listen; one that broke is hung up on.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(*net.TCPConn)
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()
		_ = from.Close()
	}
}

func (d *door) close() error {
	d.cancel()
	err := d.listener.Close()
	d.passing.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
