package raftguard

import (
	"errors"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// ErrNotAdmitted is what a node answers to every message of raft as long as its threshold is closed.
var ErrNotAdmitted = errors.New("this node has no state and was not admitted to the cluster yet")

// Threshold is a raft.Transport that lets no message in until it is opened. A node that came back with an empty disk stands
// behind one: until its old place in the configuration has been given up, it must neither vote nor confirm entries, because
// it has forgotten what it promised. Messages that it sends itself pass. It is safe for concurrent use.
type Threshold struct {
	raft.Transport

	open     chan struct{} // closed when messages may pass
	opening  sync.Once
	in       chan raft.RPC
	pumping  sync.Once
	stop     chan struct{}
	stopping sync.Once
}

var (
	_ raft.WithPreVote = (*Threshold)(nil)
	_ raft.WithClose   = (*Threshold)(nil)
	_ raft.WithPeers   = (*Threshold)(nil)
)

// NewThreshold puts a closed threshold before inner. Whatever inner offers beside a raft.Transport is reached through the
// Transport that wraps the result.
func NewThreshold(inner raft.Transport) *Threshold {
	return &Threshold{Transport: inner, open: make(chan struct{}), in: make(chan raft.RPC), stop: make(chan struct{})}
}

// Open lets messages in from now on. It is idempotent.
func (t *Threshold) Open() { t.opening.Do(func() { close(t.open) }) }

// Opened tells whether messages pass.
func (t *Threshold) Opened() bool { return closed(t.open) }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Consumer is where raft takes messages from.
func (t *Threshold) Consumer() <-chan raft.RPC {
	t.pumping.Do(func() { go t.pump() })
	return t.in
}

func (t *Threshold) pump() {
	for {
		select {
		case rpc := <-t.Transport.Consumer():
			t.pass(rpc)
		case <-t.stop:
			return
		}
	}
}

func (t *Threshold) pass(rpc raft.RPC) {
	if !t.Opened() {
		if rpc.Reader != nil {
			_, _ = io.Copy(io.Discard, rpc.Reader) // or the rest of the snapshot would be taken for the next message
		}
		rpc.Respond(nil, ErrNotAdmitted)
		return
	}
	select {
	case t.in <- rpc:
	case <-t.stop:
	}
}

// RequestPreVote passes the request on, with the rule of Transport for an inner one that knows none.
func (t *Threshold) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	return NewTransport(t.Transport).RequestPreVote(id, target, args, resp)
}

// Close ends the passage and closes inner. It is as idempotent as inner is.
func (t *Threshold) Close() error {
	t.stopping.Do(func() { close(t.stop) })
	return NewTransport(t.Transport).Close()
}

// Connect passes the peer on when inner keeps peers, and does nothing otherwise.
func (t *Threshold) Connect(peer raft.ServerAddress, transport raft.Transport) {
	NewTransport(t.Transport).Connect(peer, transport)
}

// Disconnect removes the peer when inner keeps peers, and does nothing otherwise.
func (t *Threshold) Disconnect(peer raft.ServerAddress) { NewTransport(t.Transport).Disconnect(peer) }

// DisconnectAll removes all peers when inner keeps peers, and does nothing otherwise.
func (t *Threshold) DisconnectAll() { NewTransport(t.Transport).DisconnectAll() }
