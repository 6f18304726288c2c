package nodes

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// nodeAddresses are the addresses of one node, as the other nodes reach them.
type nodeAddresses struct{ api, raft, gossip, boskos string }

// mostMoves bounds how often MoveAll gives nodes in namespaces other ports before the first ones come again.
const mostMoves = 50

// nodeAddress returns the IP address of a node in its namespace.
func nodeAddress(node int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, byte(node + 1)}) }

func nodeHostPort(node int, port uint16) string {
	return netip.AddrPortFrom(nodeAddress(node), port).String()
}

// RaftAddress returns where the other nodes reach the raft port of a node.
func (c *Cluster) RaftAddress(node int) string { return c.addressOf(node).raft }

// APIAddress returns where the other nodes reach the API of a node.
func (c *Cluster) APIAddress(node int) string { return c.addressOf(node).api }

// GossipAddress returns where the other nodes reach the gossip port of a node.
func (c *Cluster) GossipAddress(node int) string { return c.addressOf(node).gossip }

func (c *Cluster) addressOf(node int) nodeAddresses {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addresses[node]
}

// MoveAll gives all nodes other addresses, which they have from their next start on. None of them may run. Callers
// still reach them at their URLs: in namespaces everything moves, on loopback all but the addresses for callers.
func (c *Cluster) MoveAll() error {
	for _, n := range c.Nodes {
		if n.Running() {
			return fmt.Errorf("move %s: it runs", n.ID)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moves++
	moved, err := c.assignAddresses(len(c.Nodes))
	if err != nil {
		return err
	}
	for i, old := range c.addresses {
		if c.network == nil {
			moved[i].api, moved[i].boskos = old.api, old.boskos
		}
	}
	c.addresses = moved
	c.setServerArgs()
	return nil
}

// DialGossip connects to the gossip port of a node by "tcp" or "udp". Faults of links do not affect the connection.
func (c *Cluster) DialGossip(ctx context.Context, node int, protocol string) (net.Conn, error) {
	if c.network != nil {
		return c.network.dialNode(ctx, node, protocol+"4", c.GossipAddress(node))
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, protocol+"4", c.GossipAddress(node))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", c.GossipAddress(node), err)
	}
	return conn, nil
}

// assignAddresses uses IP addresses of their own in namespaces, else ports on loopback.
func (c *Cluster) assignAddresses(size int) ([]nodeAddresses, error) {
	list := make([]nodeAddresses, size)
	if c.network != nil {
		moved := uint16(c.moves % mostMoves)
		for i := range list {
			list[i] = nodeAddresses{
				nodeHostPort(i, apiPort+moved), nodeHostPort(i, raftPort+moved), nodeHostPort(i, gossipPort+moved),
				nodeHostPort(i, boskosPort+moved),
			}
		}
		return list, nil
	}
	ports, err := freePorts(4 * size)
	for i := range list {
		if err == nil {
			list[i] = nodeAddresses{ports[4*i], ports[4*i+1], ports[4*i+2], ports[4*i+3]}
		}
	}
	return list, err
}

func (c *Cluster) exposeAPI(node int) error {
	api, boskos := c.APIAddress(node), c.addressOf(node).boskos
	if c.network != nil {
		var err error
		if api, err = c.network.openForwarder(node, func() string { return c.APIAddress(node) }); err != nil {
			return err
		}
		if boskos, err = c.network.openForwarder(node, func() string { return c.addressOf(node).boskos }); err != nil {
			return err
		}
	}
	c.urls, c.boskos = append(c.urls, "http://"+api), append(c.boskos, "http://"+boskos)
	return nil
}

// ListenForNodes opens an address for this process that every node reaches as its own loopback.
func (c *Cluster) ListenForNodes() (list []net.Listener, address string, err error) {
	if c.network != nil {
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), receiverPort).String()
		list, err = c.network.listenInside(address)
		return list, address, err
	}
	one, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	return []net.Listener{one}, one.Addr().String(), nil
}

func freePorts(n int) ([]string, error) {
	ctx, listen := context.Background(), net.ListenConfig{}
	var found []string
	var open []interface{ Close() error }
	defer func() {
		for _, o := range open {
			_ = o.Close()
		}
	}()
	for len(found) < n {
		tcp, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		open = append(open, tcp)
		udp, err := listen.ListenPacket(ctx, "udp", tcp.Addr().String())
		if err != nil {
			continue
		}
		open = append(open, udp)
		found = append(found, tcp.Addr().String())
	}
	return found, nil
}
