// Package gossip finds the peers of a node with memberlist, and hears when they come, go or change.
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

// Config says who gossips, and where.
type Config struct {
	// ID and Cluster are the names of the node and of its cluster.
	ID, Cluster string
	// Bind is what to listen on, TCP and UDP, as host:port.
	Bind string
	// Advertise is what peers dial, as host:port; by default Bind. If its host is unspecified, memberlist picks a
	// private address of the machine.
	Advertise string
	// Join lists gossip addresses of peers. This node's own may be among them.
	Join   []string
	Logger hclog.Logger
	// Keys encrypt what is said; nil says it in plain text, and hears only that.
	Keys *Keyring
	// Transport replaces the sockets, in tests.
	Transport memberlist.Transport
}

// Gossip is a cluster.Discovery. It keeps nothing on disk.
type Gossip struct {
	config  Config
	log     hclog.Logger
	changed chan struct{}
	ctx     context.Context //nolint:containedctx // it is the life of the gossip
	cancel  context.CancelFunc
	loop    sync.WaitGroup

	mu         sync.Mutex
	list       *memberlist.Memberlist // nil before Start
	ownMeta    []byte                 // meta of this node
	ownAddress string                 // address of this node, as its peers see it
	peers      map[string]gossipPeer
	names      map[string]time.Time // of all nodes that memberlist was given, and when it was last
	keptNames  []string             // names that always have a place
}

// gossipPeer is a peer with its place in the gossip network.
type gossipPeer struct {
	cluster.Peer
	address string
}

var _ cluster.Discovery = (*Gossip)(nil)

// New prepares to gossip; Start begins.
func New(c Config) *Gossip {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	g := &Gossip{
		config: c, log: c.Logger.Named("gossip"), changed: make(chan struct{}, 1), peers: map[string]gossipPeer{}, names: map[string]time.Time{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Start listens, makes self known and begins to join the list, without waiting to find anybody.
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

// memberlistConfig tunes memberlist for small clusters, on one machine as well as on a network: a dead node is noticed within
// about five seconds and a change is everywhere in well under one.
func (g *Gossip) memberlistConfig() (*memberlist.Config, error) {
	c := memberlist.DefaultLANConfig()
	c.Name = g.config.ID
	c.Logger = g.log.StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true})
	c.Logger.SetOutput(&limitedLog{to: c.Logger.Writer()})
	c.Delegate, c.Events, c.Alive, c.Merge, c.Conflict = delegate{g}, delegate{g}, delegate{g}, delegate{g}, delegate{g}
	if g.config.Keys != nil {
		// What is not encrypted is neither sent nor heard, unless the operator allows it for a while.
		keys := g.config.Keys
		c.Keyring, c.GossipVerifyIncoming, c.GossipVerifyOutgoing = keys.ring, !keys.acceptsPlain, !keys.sendsPlain
	}
	c.GossipInterval = 100 * time.Millisecond
	c.PushPullInterval = 10 * time.Second
	c.TCPTimeout = 2 * time.Second
	// A node that crashed may come back under another address soon.
	c.DeadNodeReclaimTime = 5 * time.Second
	// This is only about what is sent. What comes compressed is refused by checkedTransport.
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

// openSockets opens the sockets and sets the addresses.
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

// resolveAddress turns host:port into what memberlist wants: an address and a number.
func resolveAddress(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("gossip address %q: allowed is host:port: %w", address, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return "", 0, fmt.Errorf("gossip address %q: the port is no number: %w", address, err)
	}
	ip, err := net.ResolveIPAddr("ip", cmp.Or(host, "0.0.0.0"))
	if err != nil {
		return "", 0, fmt.Errorf("gossip address %q: %w", address, err)
	}
	return ip.IP.String(), number, nil
}

// updateTimeout bounds the wait until one peer has been told; the news spreads anyway.
const updateTimeout = time.Second

// Update changes what peers learn about this node. Only one call at a time.
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
		g.log.Debug("the news about this node is slow to spread", "error", err)
	}
	return nil
}

// Peers returns the others by id, those that have gone with Alive false.
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

// KeepMembers says whose names always have a place, however many others there are.
func (g *Gossip) KeepMembers(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keptNames = ids
}

// Changed has a value after anything about the peers has changed.
func (g *Gossip) Changed() <-chan struct{} { return g.changed }

// Leave tells the peers that this node goes on purpose. It fails if nobody could be told before ctx ends.
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

// Close ends gossip and frees the port.
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
