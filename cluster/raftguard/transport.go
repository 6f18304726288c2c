package raftguard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Transport is a raft.Transport that handles heartbeats in order (raft#695) and remembers when each server last
// confirmed our leadership, counted from the moment we asked. It is safe for concurrent use.
type Transport struct {
	raft.Transport
	asyncHeartbeats bool

	mu   sync.Mutex
	acks map[raft.ServerID]ack
}

// ack says that a server accepted, as a follower in term, a message that left us at sent.
type ack struct {
	term uint64
	sent time.Time
}

var (
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
	_ raft.WithPeers   = (*Transport)(nil)
)

// TransportOption changes a Transport away from its safe defaults.
type TransportOption func(*Transport)

// UnsafeAsyncHeartbeats lets the inner transport handle heartbeats beside raft's main loop, as stock raft does.
// Replicas can diverge with it (raft#695): it exists only for the negative controls that prove they do.
func UnsafeAsyncHeartbeats() TransportOption {
	return func(t *Transport) { t.asyncHeartbeats = true }
}

// NewTransport wraps inner. Pre-vote, Close and the peer methods reach inner when it offers them.
// The caller must use only the wrapper from then on.
func NewTransport(inner raft.Transport, options ...TransportOption) *Transport {
	t := &Transport{Transport: inner, acks: make(map[raft.ServerID]ack)}
	for _, option := range options {
		option(t)
	}
	return t
}

// SetHeartbeatHandler does nothing, so that heartbeats queue behind all other messages.
// A heartbeat handled beside the main loop can raise the term of a leader that is in the middle of a write, and the
// write is then stored under a term that belongs to another leader (raft#695).
func (t *Transport) SetHeartbeatHandler(handler func(raft.RPC)) {
	if t.asyncHeartbeats {
		t.Transport.SetHeartbeatHandler(handler)
	}
}

// AppendEntries sends the request and, when it is accepted, notes the time before it was sent.
// Pipelined requests do not come this way; that only makes AckedSince stricter, for heartbeats are never pipelined.
func (t *Transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	term, sent := args.Term, time.Now()
	if err := t.Transport.AppendEntries(id, target, args, resp); err != nil {
		return err
	}
	if resp.Success && resp.Term <= term {
		t.recordAck(id, term, sent)
	}
	return nil
}

func (t *Transport) recordAck(id raft.ServerID, term uint64, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.acks[id]
	if term < last.term || (term == last.term && !sent.After(last.sent)) {
		return
	}
	t.acks[id] = ack{term: term, sent: sent}
}

// AckedSince reports whether a majority of voters, self included when it is one, accepted in exactly this term
// something that was sent at or after since. True, together with raft still leading in term when it is asked
// afterwards, proves that no later leader had been elected at since.
//
// raft.VerifyLeader proves less: it counts answers to messages sent before it was called, and those of non-voters.
// Call AckedSince after VerifyLeader, which makes raft send fresh heartbeats, with a since taken before it.
func (t *Transport) AckedSince(term uint64, since time.Time, voters []raft.ServerID, self raft.ServerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	acked := 0
	for _, id := range voters {
		if id == self || t.acks[id].confirms(term, since) {
			acked++
		}
	}
	return acked > len(voters)/2
}

// LastAck is when the last message left that a server confirmed, in any term; zero if it confirmed none.
func (t *Transport) LastAck(id raft.ServerID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acks[id].sent
}

func (a ack) confirms(term uint64, since time.Time) bool {
	return a.term == term && !a.sent.Before(since)
}

// RequestPreVote passes the request on. When inner knows no pre-vote it is granted at once, which leaves the decision
// to the real vote, as in a cluster without pre-vote.
func (t *Transport) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	inner, ok := t.Transport.(raft.WithPreVote)
	if !ok {
		*resp = raft.RequestPreVoteResponse{RPCHeader: args.RPCHeader, Term: args.Term, Granted: true}
		return nil
	}
	return inner.RequestPreVote(id, target, args, resp)
}

// Close closes inner when it can be closed. It is as idempotent as inner is.
func (t *Transport) Close() error {
	if inner, ok := t.Transport.(raft.WithClose); ok {
		return inner.Close()
	}
	return nil
}

// Connect passes the peer on when inner keeps peers, and does nothing otherwise.
func (t *Transport) Connect(peer raft.ServerAddress, transport raft.Transport) {
	if inner, ok := t.Transport.(raft.WithPeers); ok {
		inner.Connect(peer, transport)
	}
}

// Disconnect removes the peer when inner keeps peers, and does nothing otherwise.
func (t *Transport) Disconnect(peer raft.ServerAddress) {
	if inner, ok := t.Transport.(raft.WithPeers); ok {
		inner.Disconnect(peer)
	}
}

// DisconnectAll removes all peers when inner keeps peers, and does nothing otherwise.
func (t *Transport) DisconnectAll() {
	if inner, ok := t.Transport.(raft.WithPeers); ok {
		inner.DisconnectAll()
	}
}
