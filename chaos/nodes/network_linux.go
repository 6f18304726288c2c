package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// network is a namespace for each node and a switch between them.
type network struct {
	spaces []*namespace
	ports  []*os.File
	fabric *fabric
	doors  []*door
}

// newNetwork makes namespaces for nodes and joins them.
func newNetwork(size int, seed uint64) (*network, error) {
	n := &network{}
	n.fabric = newFabric(size, seed, n.deliver)
	for i := range size {
		space, err := newNamespace()
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n.spaces = append(n.spaces, space)
		port, err := newTUN(space, address(i))
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n.ports = append(n.ports, port)
	}
	for i := range n.ports {
		go n.read(i)
	}
	go n.fabric.run()
	return n, nil
}

// read takes what a node sends until its port is closed.
func (n *network) read(from int) {
	buffer := make([]byte, 2*mtu)
	for {
		length, err := n.ports[from].Read(buffer)
		if errors.Is(err, os.ErrClosed) || length == 0 && err != nil {
			return
		}
		if length < 20 || buffer[0]>>4 != 4 {
			continue // not an IPv4 packet: nodes speak nothing else
		}
		if to := int(buffer[19]) - 1; to >= 0 && to < len(n.ports) && buffer[15] == byte(from+1) {
			n.fabric.send(from, to, buffer[:length])
		}
	}
}

// deliver writes a packet to a node. One that cannot be written is lost, as on any network.
func (n *network) deliver(to int, data []byte) { _, _ = n.ports[to].Write(data) }

// dial connects to an address of a node from within its namespace, so that no broken link is in the way. The protocol is tcp4
// or udp4.
func (n *network) dial(ctx context.Context, node int, protocol, at string) (net.Conn, error) {
	var conn net.Conn
	err := n.spaces[node].inside(func() (err error) {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		conn, err = dialer.DialContext(ctx, protocol, at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", at, err)
	}
	return conn, nil
}

// open makes a door: an address on this machine's loopback that leads to one of a node.
func (n *network) open(node int, at string) (string, error) {
	d, err := newDoor(func(ctx context.Context) (net.Conn, error) { return n.dial(ctx, node, "tcp4", at) })
	if err != nil {
		return "", err
	}
	n.doors = append(n.doors, d)
	return d.address(), nil
}

// place moves the present thread to a node's namespace.
func (n *network) place(node int) error { return n.spaces[node].enter() }

func (n *network) close() error {
	var failed []error
	for _, d := range n.doors {
		failed = append(failed, d.close())
	}
	close(n.fabric.closed)
	for _, p := range n.ports {
		failed = append(failed, p.Close())
	}
	for _, s := range n.spaces {
		failed = append(failed, s.close())
	}
	return errors.Join(failed...)
}
