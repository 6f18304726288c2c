package clustertest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quorate/quorate/cluster"
)

// gossipBoard is gossip without delay: every running node sees the last announcement of every other one. A silent node
// neither sees nor is seen.
type gossipBoard struct {
	mu          sync.Mutex
	discoveries map[string]*boardDiscovery
	silent      map[string]bool
	forged      map[string]cluster.Peer // announcements that replace those of the nodes
}

type boardDiscovery struct {
	board   *gossipBoard
	self    cluster.Peer
	changed chan struct{}
}

var _ cluster.Discovery = (*boardDiscovery)(nil)

func newGossipBoard() *gossipBoard {
	return &gossipBoard{
		discoveries: map[string]*boardDiscovery{}, silent: map[string]bool{},
		forged: map[string]cluster.Peer{},
	}
}

func (b *gossipBoard) newDiscovery() *boardDiscovery {
	return &boardDiscovery{board: b, changed: make(chan struct{}, 1)}
}

func (b *gossipBoard) setSilent(id string, silent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent[id] = silent
	b.notifyAll()
}

func (b *gossipBoard) forgePeer(p cluster.Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forged[p.ID] = p
	b.notifyAll()
}

// notifyAll must be called with mu held.
func (b *gossipBoard) notifyAll() {
	for _, n := range b.discoveries {
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
}

// Start publishes the announcement.
func (n *boardDiscovery) Start(self cluster.Peer) error { return n.Update(self) }

// Update replaces the announcement.
func (n *boardDiscovery) Update(self cluster.Peer) error {
	n.board.mu.Lock()
	defer n.board.mu.Unlock()
	n.self = self
	n.board.discoveries[self.ID] = n
	n.board.notifyAll()
	return nil
}

// KeepMembers does nothing: no node is ever evicted.
func (n *boardDiscovery) KeepMembers([]string) {}

// Peers returns the other announcements.
func (n *boardDiscovery) Peers() []cluster.Peer {
	n.board.mu.Lock()
	defer n.board.mu.Unlock()
	var peers []cluster.Peer
	for id, other := range n.board.discoveries {
		if id != n.self.ID && !n.board.silent[id] && !n.board.silent[n.self.ID] {
			if _, forged := n.board.forged[id]; !forged {
				peers = append(peers, other.self)
			}
		}
	}
	for id, peer := range n.board.forged {
		if id != n.self.ID && !n.board.silent[n.self.ID] {
			peers = append(peers, peer)
		}
	}
	slices.SortFunc(peers, func(a, b cluster.Peer) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return peers
}

// Join looks for a node with that raft address, taken for its gossip address. All running nodes know each other
// already.
func (n *boardDiscovery) Join(_ context.Context, address string) (bool, error) {
	for _, p := range n.Peers() {
		if p.RaftAddr == address {
			return false, nil
		}
	}
	return false, errors.New("no node answers at " + address)
}

// Changed receives a value after any announcement has changed.
func (n *boardDiscovery) Changed() <-chan struct{} { return n.changed }

// Leave withdraws the announcement.
func (n *boardDiscovery) Leave(context.Context) error { return n.Close() }

// Close withdraws the announcement.
func (n *boardDiscovery) Close() error {
	n.board.mu.Lock()
	defer n.board.mu.Unlock()
	if n.board.discoveries[n.self.ID] == n {
		delete(n.board.discoveries, n.self.ID)
		n.board.notifyAll()
	}
	return nil
}

// NoPeers returns the discovery of a node without peers.
func NoPeers() cluster.Discovery { return newGossipBoard().newDiscovery() }
