package raftguard

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Transport is a raft.Transport that handles heartbeats in order (raft#695) and remembers, for each server, when the
// last message was sent that confirmed our leadership. It is safe for concurrent use.
type Transport struct {
	raft.Transport
	asyncHeartbeats bool
	// isSilenced reports that this node must not act as leader; nil for never.
	isSilenced func() bool
	// resolve returns where a server is now; nil for where raft's configuration says.
	resolve func(raft.ServerID, raft.ServerAddress) raft.ServerAddress
	// appended is for the pipelines, see PauseWhenIdle.
	appended func(index uint64) <-chan struct{}

	mu   sync.Mutex
	acks map[raft.ServerID]ack
}

// ack records that a server accepted, as a follower in term, a message that was sent at sent.
type ack struct {
	term uint64
	sent time.Time
}

var (
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
	_ raft.WithPeers   = (*Transport)(nil)
)

// TransportOption changes a Transport from its safe defaults.
type TransportOption func(*Transport)

// UnsafeAsyncHeartbeats makes the inner transport handle heartbeats outside of raft's main loop, as stock raft does.
// Replicas can then diverge (raft#695): it exists only for the negative controls that prove it.
func UnsafeAsyncHeartbeats() TransportOption {
	return func(t *Transport) { t.asyncHeartbeats = true }
}

// SilenceWhile makes a node stop to act as leader while the function returns true: it sends no entries, heartbeats or
// snapshots, so its followers elect another leader. raft cannot step down itself while its main loop waits for a write
// (raft#503), but goes on sending heartbeats, which keep the followers from electing.
func SilenceWhile(isSilenced func() bool) TransportOption {
	return func(t *Transport) { t.isSilenced = isSilenced }
}

// ResolveAddresses makes the transport send to the address that the function returns for a server and its address in
// raft's configuration. The configuration can be corrected only by a leader, which a majority that has moved could
// otherwise not elect.
func ResolveAddresses(resolve func(raft.ServerID, raft.ServerAddress) raft.ServerAddress) TransportOption {
	return func(t *Transport) { t.resolve = resolve }
}

func (t *Transport) addressOf(id raft.ServerID, configured raft.ServerAddress) raft.ServerAddress {
	if t.resolve == nil {
		return configured
	}
	return t.resolve(id, configured)
}

// ErrSilenced is the error of messages that were not sent because of SilenceWhile.
var ErrSilenced = errors.New("not sent: a write to the log of this leader does not return")

func (t *Transport) checkSilenced() error {
	if t.isSilenced != nil && t.isSilenced() {
		return ErrSilenced
	}
	return nil
}

// NewTransport wraps inner. Pre-vote, Close and the peer methods are forwarded if inner supports them. The caller must
// use only the wrapper from then on.
func NewTransport(inner raft.Transport, options ...TransportOption) *Transport {
	t := &Transport{Transport: inner, acks: make(map[raft.ServerID]ack)}
	for _, option := range options {
		option(t)
	}
	return t
}

// SetHeartbeatHandler does nothing, so that heartbeats queue behind all other messages. A heartbeat that is handled
// outside of the main loop can raise the term of a leader in the middle of a write, and the write is then stored under
// a term that belongs to another leader (raft#695).
func (t *Transport) SetHeartbeatHandler(handler func(raft.RPC)) {
	if t.asyncHeartbeats {
		t.Transport.SetHeartbeatHandler(handler)
	}
}

// AppendEntries sends the request and, if it is accepted, records when it was sent. Pipelined requests bypass it; that
// only makes AckedSince stricter, because heartbeats are never pipelined.
func (t *Transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	term, sent := args.Term, time.Now()
	if err := t.checkSilenced(); err != nil {
		return err
	}
	if err := t.Transport.AppendEntries(id, t.addressOf(id, target), args, resp); err != nil {
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

// AckedSince reports whether a majority of voters, including self if it is one, accepted in exactly this term a message
// that was sent at or after since. If raft, asked afterwards, still leads in term, this proves that no later leader had
// been elected at since.
//
// raft.VerifyLeader proves less: it counts answers to messages sent before it was called, and answers of non-voters.
// Call AckedSince after VerifyLeader, which makes raft send new heartbeats, with a since taken before it.
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

// LastAck returns when the last message was sent that a server confirmed, in any term; zero if there is none.
func (t *Transport) LastAck(id raft.ServerID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acks[id].sent
}

func (a ack) confirms(term uint64, since time.Time) bool {
	return a.term == term && !a.sent.Before(since)
}

// RequestPreVote forwards the request. If inner does not support pre-vote it is granted at once, which leaves the
// decision to the real vote, as in a cluster without pre-vote.
func (t *Transport) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	inner, ok := t.Transport.(raft.WithPreVote)
	if !ok {
		*resp = raft.RequestPreVoteResponse{RPCHeader: args.RPCHeader, Term: args.Term, Granted: true}
		return nil
	}
	return inner.RequestPreVote(id, t.addressOf(id, target), args, resp)
}

// RequestVote requests the vote of a server.
func (t *Transport) RequestVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	return t.Transport.RequestVote(id, t.addressOf(id, target), args, resp)
}

// TimeoutNow makes a server start an election.
func (t *Transport) TimeoutNow(
	id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	return t.Transport.TimeoutNow(id, t.addressOf(id, target), args, resp)
}

// InstallSnapshot sends a snapshot.
func (t *Transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	if err := t.checkSilenced(); err != nil {
		return err
	}
	return t.Transport.InstallSnapshot(id, t.addressOf(id, target), args, resp, data)
}

// Close closes inner if it can be closed. It is idempotent if inner's Close is.
func (t *Transport) Close() error {
	if inner, ok := t.Transport.(raft.WithClose); ok {
		return inner.Close()
	}
	return nil
}

// Connect forwards the call if inner supports peers, and does nothing otherwise.
func (t *Transport) Connect(peer raft.ServerAddress, transport raft.Transport) {
	if inner, ok := t.Transport.(raft.WithPeers); ok {
		inner.Connect(peer, transport)
	}
}

// Disconnect forwards the call if inner supports peers, and does nothing otherwise.
func (t *Transport) Disconnect(peer raft.ServerAddress) {
	if inner, ok := t.Transport.(raft.WithPeers); ok {
		inner.Disconnect(peer)
	}
}

// DisconnectAll forwards the call if inner supports peers, and does nothing otherwise.
func (t *Transport) DisconnectAll() {
	if inner, ok := t.Transport.(raft.WithPeers); ok {
		inner.DisconnectAll()
	}
}
