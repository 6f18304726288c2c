package raftguard

import (
	"errors"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// ErrNotAdmitted is the answer to every raft message while the gate is closed.
var ErrNotAdmitted = errors.New("this node has no state and was not admitted to the cluster yet")

// JoinGate is a raft.Transport that refuses incoming messages until it is opened. It protects a node that came back
// with an empty disk: until the node's former place in the configuration has been given up, it must neither vote nor
// confirm entries, because it has forgotten its earlier votes. Outgoing messages pass. It is safe for concurrent use.
type JoinGate struct {
	raft.Transport

	opened      chan struct{} // closed when messages may pass
	openOnce    sync.Once
	requests    chan raft.RPC
	forwardOnce sync.Once
	stop        chan struct{}
	stopOnce    sync.Once
}

var (
	_ raft.WithPreVote = (*JoinGate)(nil)
	_ raft.WithClose   = (*JoinGate)(nil)
	_ raft.WithPeers   = (*JoinGate)(nil)
)

// NewJoinGate puts a closed gate in front of inner. Optional interfaces of inner are reached through the Transport that
// wraps the result.
func NewJoinGate(inner raft.Transport) *JoinGate {
	return &JoinGate{
		Transport: inner, opened: make(chan struct{}), requests: make(chan raft.RPC),
		stop: make(chan struct{}),
	}
}

// Open admits messages from now on. It is idempotent.
func (t *JoinGate) Open() { t.openOnce.Do(func() { close(t.opened) }) }

// IsOpen reports whether messages are admitted.
func (t *JoinGate) IsOpen() bool { return isClosed(t.opened) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Consumer returns the channel of admitted messages.
func (t *JoinGate) Consumer() <-chan raft.RPC {
	t.forwardOnce.Do(func() { go t.forwardRequests() })
	return t.requests
}

func (t *JoinGate) forwardRequests() {
	for {
		select {
		case rpc := <-t.Transport.Consumer():
			t.forwardOrRefuse(rpc)
		case <-t.stop:
			return
		}
	}
}

func (t *JoinGate) forwardOrRefuse(rpc raft.RPC) {
	if !t.IsOpen() {
		if rpc.Reader != nil {
			_, _ = io.Copy(io.Discard, rpc.Reader) // or the next message would start with the rest of the snapshot
		}
		rpc.Respond(nil, ErrNotAdmitted)
		return
	}
	select {
	case t.requests <- rpc:
	case <-t.stop:
	}
}

// RequestPreVote forwards the request; see Transport.RequestPreVote.
func (t *JoinGate) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	return NewTransport(t.Transport).RequestPreVote(id, target, args, resp)
}

// Close stops forwarding and closes inner. It is idempotent if inner's Close is.
func (t *JoinGate) Close() error {
	t.stopOnce.Do(func() { close(t.stop) })
	return NewTransport(t.Transport).Close()
}

// Connect forwards the call if inner supports peers, and does nothing otherwise.
func (t *JoinGate) Connect(peer raft.ServerAddress, transport raft.Transport) {
	NewTransport(t.Transport).Connect(peer, transport)
}

// Disconnect forwards the call if inner supports peers, and does nothing otherwise.
func (t *JoinGate) Disconnect(peer raft.ServerAddress) { NewTransport(t.Transport).Disconnect(peer) }

// DisconnectAll forwards the call if inner supports peers, and does nothing otherwise.
func (t *JoinGate) DisconnectAll() { NewTransport(t.Transport).DisconnectAll() }
