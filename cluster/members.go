package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// Member is one node of the cluster as this node knows it.
type Member struct {
	ID string
	// RaftAddr is taken from raft's configuration if it contains the node, otherwise from the same sources as HTTPAddr.
	RaftAddr string
	// HTTPAddr and Version are what the node itself reported. Until it has answered, and for versions below feature level
	// 5, they come from gossip and are only good for display, because any gossip participant can forge them.
	HTTPAddr, Version string
	// FeatureLevel is what the node itself reported; 0 until it has answered.
	FeatureLevel uint32
	// Voter is true for a voter of raft's configuration.
	Voter bool
	// Alive is the state according to gossip; true for this node itself.
	Alive bool
}

// peerDirectory holds what gossip last reported about peers, including peers that are gone. It is used to find the
// addresses to query and for display; no decision is based on it (docs/adr/0053).
type peerDirectory struct {
	discovery Discovery

	announceLock sync.Mutex // serializes announcements, so that the last one is current

	mu    sync.Mutex
	self  Peer
	peers map[string]Peer
}

func newPeerDirectory(discovery Discovery, self Peer) *peerDirectory {
	return &peerDirectory{discovery: discovery, self: self, peers: map[string]Peer{}}
}

// refreshPeers takes the current peers from gossip.
func (d *peerDirectory) refreshPeers() {
	heard := d.discovery.Peers()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, p := range d.peers {
		p.Alive = false
		d.peers[id] = p
	}
	for _, p := range heard {
		if p.ID != d.self.ID {
			d.peers[p.ID] = p
		}
	}
}

// alivePeers returns the peers that are alive according to gossip, sorted by id.
func (d *peerDirectory) alivePeers() []Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	var alive []Peer
	for _, p := range d.peers {
		if p.Alive {
			alive = append(alive, p)
		}
	}
	slices.SortFunc(alive, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return alive
}

func (d *peerDirectory) findPeer(id string) (Peer, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id == d.self.ID {
		return d.self, true
	}
	p, found := d.peers[id]
	return p, found
}

func (d *peerDirectory) ownPeer() Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.self
}

// announceSelf changes what this node announces about itself.
func (d *peerDirectory) announceSelf(change func(*Peer)) error {
	d.announceLock.Lock()
	defer d.announceLock.Unlock()
	d.mu.Lock()
	change(&d.self)
	self := d.self
	d.mu.Unlock()
	return d.discovery.Update(self)
}

// Members returns the nodes sorted by id: the servers of raft's configuration, and live peers known only from gossip
// (not voters; they wait to be added).
func (n *Node) Members() []Member {
	var members []Member
	servers := n.servers()
	for _, s := range servers {
		members = append(members, n.memberOf(s))
	}
	for _, p := range append(n.directory.alivePeers(), n.directory.ownPeer()) {
		known := slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == p.ID })
		if !known {
			members = append(members, n.memberOf(raft.Server{ID: raft.ServerID(p.ID), Suffrage: raft.Nonvoter}))
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// memberOf combines what raft, the server itself and gossip report about one server.
func (n *Node) memberOf(s raft.Server) Member {
	p, _ := n.directory.findPeer(string(s.ID))
	status := n.answers.findAnswer(string(s.ID)).NodeStatus
	level, _, _ := n.knownFormat(s)
	return Member{
		ID: string(s.ID), RaftAddr: cmp.Or(string(s.Address), status.RaftAddr, p.RaftAddr),
		HTTPAddr: cmp.Or(status.HTTPAddr, p.HTTPAddr),
		Version:  cmp.Or(status.Version, p.Version), FeatureLevel: level,
		Voter: s.Suffrage == raft.Voter, Alive: p.Alive,
	}
}

// servers returns raft's latest configuration, which may not be committed yet.
func (n *Node) servers() []raft.Server {
	return n.raft.GetConfiguration().Configuration().Servers
}

// Leader returns the leader as this node knows it, or false if it knows none. A node that was elected does not report
// itself before it has established its leadership, so requests can be sent to the reported leader.
func (n *Node) Leader() (Member, bool) {
	address, id := n.raft.LeaderWithID()
	if id == "" || n.fault() != nil {
		return Member{}, false
	}
	if string(id) == n.config.ID && n.leadership.Load() == nil {
		return n.leaderNamedByPeers()
	}
	for _, s := range n.servers() {
		if s.ID == id {
			return n.memberOf(s), true
		}
	}
	return n.memberOf(raft.Server{ID: id, Address: address, Suffrage: raft.Nonvoter}), true
}

// leaderID returns the id of the known leader; empty if there is none.
func (n *Node) leaderID() string {
	leader, _ := n.Leader()
	return leader.ID
}

// IsLeader reports whether this node leads and has established its leadership, so that Propose and ReadIndex work here.
func (n *Node) IsLeader() bool { return n.leadership.Load() != nil }

// WaitLeader waits until this node knows a leader, until ctx ends (NoLeader) or the node stops (Halted or
// ShuttingDown). Errors are *Error.
func (n *Node) WaitLeader(ctx context.Context) (Member, error) {
	for {
		changed := n.changes.nextChange()
		if err := n.checkServing(); err != nil {
			return Member{}, err
		}
		if leader, known := n.Leader(); known {
			return leader, nil
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
		case <-ctx.Done():
			return Member{}, newError(NoLeader, true, ctx.Err(),
				"no leader is known to node %s; a majority of the voters must be up and reach each other", n.config.ID)
		}
	}
}
