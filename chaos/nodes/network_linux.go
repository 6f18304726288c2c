package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

type network struct {
	namespaces []*namespace
	ports      []*os.File
	packets    *packetSwitch
	forwarders []*forwarder
}

func newNetwork(size int, seed uint64) (*network, error) {
	n := &network{}
	n.packets = newPacketSwitch(size, seed, n.deliverPacket)
	for i := range size {
		space, err := newNamespace()
		if err != nil {
			return nil, errors.Join(err, n.shutDown())
		}
		n.namespaces = append(n.namespaces, space)
		port, err := newTUN(space, nodeAddress(i))
		if err != nil {
			return nil, errors.Join(err, n.shutDown())
		}
		n.ports = append(n.ports, port)
	}
	for i := range n.ports {
		go n.readPackets(i)
	}
	go n.packets.deliverLoop()
	return n, nil
}

// readPackets forwards what a node sends to the switch until the node's port is closed.
func (n *network) readPackets(from int) {
	buffer := make([]byte, 2*mtu)
	for {
		length, err := n.ports[from].Read(buffer)
		if errors.Is(err, os.ErrClosed) || length == 0 && err != nil {
			return
		}
		if length < 20 || buffer[0]>>4 != 4 {
			continue // not IPv4, which is all that nodes use
		}
		if to := int(buffer[19]) - 1; to >= 0 && to < len(n.ports) && buffer[15] == byte(from+1) {
			n.packets.sendPacket(from, to, buffer[:length])
		}
	}
}

// deliverPacket writes a packet to a node. A packet that cannot be written is lost, as on any network.
func (n *network) deliverPacket(to int, data []byte) { _, _ = n.ports[to].Write(data) }

// dialNode connects to an address of a node from within its namespace, so that faults of links do not matter. The
// protocol is "tcp4" or "udp4".
func (n *network) dialNode(ctx context.Context, node int, protocol, at string) (net.Conn, error) {
	var conn net.Conn
	err := n.namespaces[node].runInside(func() (err error) {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		conn, err = dialer.DialContext(ctx, protocol, at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", at, err)
	}
	return conn, nil
}

// openForwarder returns an address on loopback that leads to an address of a node, which is asked for each connection.
func (n *network) openForwarder(node int, at func() string) (string, error) {
	d, err := newForwarder(func(ctx context.Context) (net.Conn, error) { return n.dialNode(ctx, node, "tcp4", at()) })
	if err != nil {
		return "", err
	}
	n.forwarders = append(n.forwarders, d)
	return d.listenAddress(), nil
}

// listenInside opens the same loopback address in the namespace of each node.
func (n *network) listenInside(address string) (list []net.Listener, err error) {
	for _, space := range n.namespaces {
		err = errors.Join(err, space.runInside(func() error {
			listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", address)
			if err == nil {
				list = append(list, listener)
			}
			return err
		}))
	}
	return list, err
}

// enterNamespace moves the current thread to a node's namespace.
func (n *network) enterNamespace(node int) error { return n.namespaces[node].enterThread() }

func (n *network) shutDown() error {
	var failed []error
	for _, d := range n.forwarders {
		failed = append(failed, d.shutDown())
	}
	close(n.packets.closed)
	for _, p := range n.ports {
		failed = append(failed, p.Close())
	}
	for _, s := range n.namespaces {
		failed = append(failed, s.closeFile())
	}
	return errors.Join(failed...)
}
