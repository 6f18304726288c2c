// Package gossip discovers the peers of a node with memberlist: [Gossip] implements cluster.Discovery.
//
// memberlist trusts what it receives, so everything that arrives is checked first: [Gossip] listens through a transport
// that drops whatever a member could not have sent (transport.go, message.go). [Keyring] has the keys that encrypt
// gossip. What gossip reports is only a hint; no decision about membership is based on it (docs/adr/0053).
package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/quorate/quorate/cluster"
)

// Config is the configuration of Gossip.
type Config struct {
	// ID and Cluster are the names of the node and of its cluster.
	ID, Cluster string
	// Bind is the host:port to listen on, TCP and UDP.
	Bind string
	// Advertise is the host:port that peers dial; default Bind. If its host is unspecified, memberlist picks a private
	// address of the machine.
	Advertise string
	// Join lists gossip addresses of peers. It may contain this node's own address.
	Join   []string
	Logger hclog.Logger
	// Keys encrypt all messages. If nil, messages are sent and accepted in plain text only.
	Keys *Keyring
	// Transport replaces the sockets in tests.
	Transport memberlist.Transport
}

// Gossip is a cluster.Discovery. It stores nothing on disk.
type Gossip struct {
	config  Config
	log     hclog.Logger
	changed chan struct{}
	ctx     context.Context //nolint:containedctx // it ends with the gossip
	cancel  context.CancelFunc
	loop    sync.WaitGroup

	mu         sync.Mutex
	list       *memberlist.Memberlist // nil before Start
	ownMeta    []byte                 // metadata of this node
	ownAddress string                 // gossip address of this node, as seen by its peers
	peers      map[string]gossipPeer
	names      map[string]time.Time // when each known name was last reported alive
	keptNames  []string             // names that are never evicted
}

type gossipPeer struct {
	cluster.Peer
	address string
}

var _ cluster.Discovery = (*Gossip)(nil)

// New creates a Gossip that does not run yet; see Start.
func New(c Config) *Gossip {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	g := &Gossip{
		config: c, log: c.Logger.Named("gossip"), changed: make(chan struct{}, 1), peers: map[string]gossipPeer{},
		names: map[string]time.Time{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Start listens, announces self and starts to join the list, without waiting to find a peer.
func (g *Gossip) Start(self cluster.Peer) error {
	own, err := encodeMeta(g.config.Cluster, self)
	if err != nil {
		return err
	}
	g.ownMeta = own
	settings, err := g.memberlistConfig()
	if err != nil {
		return err
	}
	list, err := memberlist.Create(settings)
	if err != nil {
		err = fmt.Errorf("gossip on %s: %w; another process may be using the port", g.config.Bind, err)
		return errors.Join(err, settings.Transport.Shutdown())
	}
	g.mu.Lock()
	g.list = list
	g.mu.Unlock()
	g.loop.Go(g.keepJoined)
	return nil
}

// memberlistConfig tunes memberlist for small clusters, on one machine or in a network: a dead node is detected within
// about five seconds, and a change reaches all nodes in well under one second.
func (g *Gossip) memberlistConfig() (*memberlist.Config, error) {
	c := memberlist.DefaultLANConfig()
	c.Name = g.config.ID
	c.Logger = g.log.StandardLogger(nil)
	c.Logger.SetOutput(&memberlistLog{log: g.log})
	c.Delegate, c.Events, c.Alive, c.Merge, c.Conflict = delegate{g}, delegate{g}, delegate{g}, delegate{g}, delegate{g}
	if g.config.Keys != nil {
		// Unencrypted messages are neither sent nor accepted, unless the operator temporarily allows them.
		keys := g.config.Keys
		c.Keyring, c.GossipVerifyIncoming, c.GossipVerifyOutgoing = keys.ring, !keys.acceptsPlain, !keys.sendsPlain
	}
	c.GossipInterval = 100 * time.Millisecond
	c.PushPullInterval = 10 * time.Second
	c.TCPTimeout = 2 * time.Second
	// A node that crashed may soon restart under another address.
	c.DeadNodeReclaimTime = 5 * time.Second
	// This only affects sending. Received compressed messages are refused by checkedTransport.
	c.EnableCompression = false
	below := g.config.Transport
	if below == nil {
		var err error
		if below, err = g.openSockets(c); err != nil {
			return nil, err
		}
	}
	c.Transport = newCheckedTransport(below, g.config.Keys, g.log)
	return c, nil
}

func (g *Gossip) openSockets(c *memberlist.Config) (memberlist.Transport, error) {
	var err error
	if c.BindAddr, c.BindPort, err = resolveAddress(g.config.Bind); err != nil {
		return nil, err
	}
	if c.AdvertiseAddr, c.AdvertisePort, err = resolveAddress(cmp.Or(g.config.Advertise, g.config.Bind)); err != nil {
		return nil, err
	}
	if ip := net.ParseIP(c.AdvertiseAddr); ip != nil && ip.IsUnspecified() {
		c.AdvertiseAddr = ""
	}
	sockets, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{c.BindAddr}, BindPort: c.BindPort, Logger: c.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("gossip on %s: %w; another process may be using the port", g.config.Bind, err)
	}
	if c.BindPort == 0 {
		c.BindPort, c.AdvertisePort = sockets.GetAutoBindPort(), sockets.GetAutoBindPort()
	}
	return sockets, nil
}

// resolveAddress splits host:port into an IP address and a port number, as memberlist requires.
func resolveAddress(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("gossip address %q: allowed is host:port: %w", address, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return "", 0, fmt.Errorf("gossip address %q: the port is not a number: %w", address, err)
	}
	ip, err := net.ResolveIPAddr("ip", cmp.Or(host, "0.0.0.0"))
	if err != nil {
		return "", 0, fmt.Errorf("gossip address %q: %w", address, err)
	}
	return ip.IP.String(), number, nil
}

// updateTimeout bounds the wait until one peer has received an update; the update spreads anyway.
const updateTimeout = time.Second

// Update changes what this node announces. Calls must not be concurrent.
func (g *Gossip) Update(self cluster.Peer) error {
	own, err := encodeMeta(g.config.Cluster, self)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.ownMeta = own
	list := g.list
	g.mu.Unlock()
	if list == nil || g.ctx.Err() != nil {
		return errors.New("gossip does not run")
	}
	if err := list.UpdateNode(updateTimeout); err != nil {
		g.log.Debug("the update of this node spreads slowly", "error", err)
	}
	return nil
}

// Peers returns the other nodes sorted by id, with Alive false for those that have left or failed.
func (g *Gossip) Peers() []cluster.Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	peers := make([]cluster.Peer, 0, len(g.peers))
	for _, p := range g.peers {
		peers = append(peers, p.Peer)
	}
	slices.SortFunc(peers, func(a, b cluster.Peer) int { return cmp.Compare(a.ID, b.ID) })
	return peers
}

// KeepMembers sets the ids that are never evicted.
func (g *Gossip) KeepMembers(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keptNames = ids
}

// Changed receives a value after the peers have changed.
func (g *Gossip) Changed() <-chan struct{} { return g.changed }

// Leave announces that this node leaves. It fails if no peer could be told before ctx ends.
func (g *Gossip) Leave(ctx context.Context) error {
	list := g.activeList()
	if list == nil {
		return nil
	}
	timeout := updateTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	if timeout <= 0 {
		return ctx.Err()
	}
	return list.Leave(timeout)
}

// Close stops gossip and frees the port.
func (g *Gossip) Close() error {
	list := g.activeList()
	g.cancel()
	g.loop.Wait()
	if list == nil {
		return nil
	}
	return list.Shutdown()
}

func (g *Gossip) activeList() *memberlist.Memberlist {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return nil
	}
	return g.list
}
