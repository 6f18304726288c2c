package clustertest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quorate/quorate/cluster"
)

// board is gossip without delay: every node that has started sees what every other one last wrote. A silent node
// neither sees nor is seen.
type board struct {
	mu      sync.Mutex
	notices map[string]*notice
	silent  map[string]bool
	forged  map[string]cluster.Peer // what all see in the name of a node, instead of what it wrote
}

// notice is one node's end of the board: a cluster.Discovery.
type notice struct {
	board   *board
	self    cluster.Peer
	changed chan struct{}
}

var _ cluster.Discovery = (*notice)(nil)

func newBoard() *board {
	return &board{notices: map[string]*notice{}, silent: map[string]bool{}, forged: map[string]cluster.Peer{}}
}

func (b *board) notice() *notice { return &notice{board: b, changed: make(chan struct{}, 1)} }

func (b *board) silence(id string, silent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent[id] = silent
	b.tell()
}

func (b *board) forge(p cluster.Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forged[p.ID] = p
	b.tell()
}

// tell must be called with mu held.
func (b *board) tell() {
	for _, n := range b.notices {
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
}

// Start puts the notice up.
func (n *notice) Start(self cluster.Peer) error { return n.Update(self) }

// Update replaces the notice.
func (n *notice) Update(self cluster.Peer) error {
	n.board.mu.Lock()
	defer n.board.mu.Unlock()
	n.self = self
	n.board.notices[self.ID] = n
	n.board.tell()
	return nil
}

// Keep does nothing: every name has a place.
func (n *notice) Keep([]string) {}

// Peers reads the other notices.
func (n *notice) Peers() []cluster.Peer {
	n.board.mu.Lock()
	defer n.board.mu.Unlock()
	var peers []cluster.Peer
	for id, other := range n.board.notices {
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

// Join finds who has that address for its raft, as if it were for gossip; all who are up know each other already.
func (n *notice) Join(_ context.Context, address string) (bool, error) {
	for _, p := range n.Peers() {
		if p.RaftAddr == address {
			return false, nil
		}
	}
	return false, errors.New("nobody answers at " + address)
}

// Changed has a value after any notice has changed.
func (n *notice) Changed() <-chan struct{} { return n.changed }

// Leave takes the notice down.
func (n *notice) Leave(context.Context) error { return n.Close() }

// Close takes the notice down.
func (n *notice) Close() error {
	n.board.mu.Lock()
	defer n.board.mu.Unlock()
	if n.board.notices[n.self.ID] == n {
		delete(n.board.notices, n.self.ID)
		n.board.tell()
	}
	return nil
}

// Alone is the discovery of a node without peers.
func Alone() cluster.Discovery { return newBoard().notice() }
