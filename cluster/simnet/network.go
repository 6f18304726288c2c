// Package simnet is a network in memory for raft nodes in tests: it delays, drops and cuts what they send each other,
// in virtual time when it runs inside testing/synctest.
//
//	net := simnet.New(seed)
//	defer net.Close()
//	node := raft.NewRaft(..., raftguard.NewTransport(net.Transport("a")))
//	net.Isolate("a")
//	net.Heal()
package simnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Errors that a sender gets for a message that is not delivered.
var (
	errRefused = errors.New("simnet: connection refused: no such node is running")
	errLost    = errors.New("simnet: connection lost: the link is cut or the message was dropped")
	errTimeout = errors.New("simnet: timeout: no answer")
	errClosed  = errors.New("simnet: the transport is closed")
)

const (
	// lossNotice is how long it takes until a sender learns that a message was lost.
	lossNotice = 500 * time.Millisecond
	// answerTimeout is how long a sender waits for an answer to a delivered message.
	answerTimeout = 10 * time.Second
)

// Network connects the transports that it creates. The address of a node is its id. All methods are safe for concurrent
// use and take effect at once. By default messages arrive at once and none is lost.
type Network struct {
	done chan struct{}
	busy sync.WaitGroup // goroutines that carry messages

	mu     sync.Mutex
	closed bool
	nodes  map[raft.ServerAddress]*Transport
	cuts   map[link]bool
	delay  func(from, to raft.ServerID) time.Duration
	loss   func(from, to raft.ServerID) float64
	random *rand.Rand
}

type link struct{ from, to raft.ServerAddress }

// New creates a network without nodes. seed determines which messages SetLoss drops.
func New(seed uint64) *Network {
	return &Network{
		done:   make(chan struct{}),
		nodes:  make(map[raft.ServerAddress]*Transport),
		cuts:   make(map[link]bool),
		random: rand.New(rand.NewPCG(seed, seed)),
	}
}

// Transport creates the transport of node id and closes its previous one: this is how a node restarts. Cuts, delay and
// loss stay as they are.
func (n *Network) Transport(id raft.ServerID) *Transport {
	t := newTransport(n, raft.ServerAddress(id))
	n.mu.Lock()
	earlier := n.nodes[t.address]
	n.nodes[t.address] = t
	n.mu.Unlock()
	if earlier != nil {
		earlier.close()
	}
	return t
}

// Cut stops all messages between a and b, both ways. Messages in flight are lost too.
func (n *Network) Cut(a, b raft.ServerID) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay stops all messages, requests and answers, that go from one node to another.
func (n *Network) CutOneWay(from, to raft.ServerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[link{raft.ServerAddress(from), raft.ServerAddress(to)}] = true
}

// Isolate cuts id off from every other node that has a transport now.
func (n *Network) Isolate(id raft.ServerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	self := raft.ServerAddress(id)
	for other := range n.nodes {
		if other != self {
			n.cuts[link{self, other}] = true
			n.cuts[link{other, self}] = true
		}
	}
}

// Heal removes all cuts. It leaves delay and loss as they are.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
}

// SetDelay delays every message sent from now on by the result of delay; nil means no delay. Requests and answers are
// delayed alike, each in its own direction. delay is called under a lock and must not call the network.
func (n *Network) SetDelay(delay func(from, to raft.ServerID) time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = delay
}

// SetLoss drops every message with the probability, 0 to 1, returned by loss; nil means no loss. loss is called under a
// lock and must not call the network.
func (n *Network) SetLoss(loss func(from, to raft.ServerID) float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loss = loss
}

// Close closes all transports and waits until no goroutine of the network is left. It is idempotent. Call it after the
// nodes have shut down and before the testing/synctest bubble ends.
func (n *Network) Close() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.done)
	}
	nodes := make([]*Transport, 0, len(n.nodes))
	for _, t := range n.nodes {
		nodes = append(nodes, t)
	}
	n.mu.Unlock()
	for _, t := range nodes {
		t.close()
	}
	n.busy.Wait()
}

// startCarrier starts a goroutine that Close waits for. It is false when the network is closed.
func (n *Network) startCarrier(carry func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.busy.Go(carry)
	return true
}

func (n *Network) transportAt(address raft.ServerAddress) (*Transport, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.nodes[address]
	if t == nil || t.isClosed() {
		return nil, fmt.Errorf("%w: %s", errRefused, address)
	}
	return t, nil
}

func (n *Network) sendDelay(way link) (time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cuts[way] {
		return 0, errLost
	}
	from, to := raft.ServerID(way.from), raft.ServerID(way.to)
	if n.loss != nil && n.random.Float64() < n.loss(from, to) {
		return 0, errLost
	}
	if n.delay == nil {
		return 0, nil
	}
	return n.delay(from, to), nil
}

func (n *Network) checkArrival(way link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cuts[way] {
		return errLost
	}
	return nil
}

// carryMessage carries one message over a link and returns when it arrives or is lost.
func (n *Network) carryMessage(way link) error {
	delay, err := n.sendDelay(way)
	if err != nil {
		return err
	}
	if err := n.sleepOrClose(delay); err != nil {
		return err
	}
	return n.checkArrival(way)
}

func (n *Network) sleepOrClose(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-n.done:
		return errClosed
	}
}
