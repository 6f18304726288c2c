package simnet

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Transport is one node's end of a Network. It behaves like raft.NetworkTransport as far as raft can observe:
// heartbeats take the fast path if a handler is set, every other request waits for raft's main loop, pipelines keep
// their order and break on the first loss, and a request takes effect even if its answer arrives too late.
type Transport struct {
	net     *Network
	address raft.ServerAddress
	inbox   chan raft.RPC
	closed  chan struct{}
	once    sync.Once

	mu        sync.Mutex
	heartbeat func(raft.RPC)
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

func newTransport(n *Network, address raft.ServerAddress) *Transport {
	return &Transport{net: n, address: address, inbox: make(chan raft.RPC), closed: make(chan struct{})}
}

// Close disconnects the node: requests to it are refused, its own requests fail. It is idempotent.
func (t *Transport) Close() error {
	t.close()
	return nil
}

func (t *Transport) close() { t.once.Do(func() { close(t.closed) }) }

func (t *Transport) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// Done is closed when the transport is closed.
func (t *Transport) Done() <-chan struct{} { return t.closed }

// Consumer returns the channel of requests for raft's main loop.
func (t *Transport) Consumer() <-chan raft.RPC { return t.inbox }

// LocalAddr returns the address, which is the id, of the node.
func (t *Transport) LocalAddr() raft.ServerAddress { return t.address }

// EncodePeer returns the address unchanged.
func (t *Transport) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}

// DecodePeer returns the address unchanged.
func (t *Transport) DecodePeer(address []byte) raft.ServerAddress { return raft.ServerAddress(address) }

// SetHeartbeatHandler sets the fast path: heartbeats are then handled outside of raft's main loop.
func (t *Transport) SetHeartbeatHandler(handler func(raft.RPC)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heartbeat = handler
}

// AppendEntries sends one request and waits for the answer.
func (t *Transport) AppendEntries(
	_ raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	return sendRequest(t, target, copyAppend(args), nil, resp)
}

// RequestVote sends one request and waits for the answer.
func (t *Transport) RequestVote(
	_ raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	request := *args
	return sendRequest(t, target, &request, nil, resp)
}

// RequestPreVote sends one request and waits for the answer.
func (t *Transport) RequestPreVote(
	_ raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	request := *args
	return sendRequest(t, target, &request, nil, resp)
}

// TimeoutNow sends one request and waits for the answer.
func (t *Transport) TimeoutNow(
	_ raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	request := *args
	return sendRequest(t, target, &request, nil, resp)
}

// InstallSnapshot sends one request and streams data after it; a cut breaks the stream.
func (t *Transport) InstallSnapshot(
	_ raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	request := *args
	s := newStream(t.net, link{t.address, target}, io.LimitReader(data, args.Size))
	defer s.stop()
	return sendRequest(t, target, &request, s, resp)
}

// copyAppend copies a request, so that nodes do not share memory and raft may reuse its heartbeat request.
func copyAppend(args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	request := *args
	request.Entries = make([]*raft.Log, len(args.Entries))
	for i, entry := range args.Entries {
		entryCopy := *entry
		request.Entries[i] = &entryCopy
	}
	return &request
}

type answer struct {
	response any
	err      error
}

// sendRequest sends request to target and waits until resp is filled, the message is lost, or the answer times out.
func sendRequest[Response any](t *Transport, target raft.ServerAddress, request any, body *snapshotStream,
	resp *Response,
) error {
	answers := make(chan answer, 1)
	started := t.net.startCarrier(func() { answers <- t.roundTrip(target, request, body) })
	if !started || t.isClosed() {
		return errClosed
	}
	timeout := time.NewTimer(answerTimeout)
	defer timeout.Stop()
	select {
	case a := <-answers:
		if filled, ok := a.response.(*Response); ok {
			*resp = *filled
		}
		return a.err
	case <-timeout.C:
		return errTimeout
	case <-t.closed:
		return errClosed
	}
}

// roundTrip delivers request and returns the answer. It continues after the caller has given up, as a real network
// does.
func (t *Transport) roundTrip(target raft.ServerAddress, request any, body *snapshotStream) answer {
	peer, err := t.net.transportAt(target)
	if err != nil {
		return answer{err: err}
	}
	if err := t.net.carryMessage(link{t.address, target}); err != nil {
		return answer{err: t.net.senderError(err)}
	}
	a := peer.handleRequest(request, body)
	if err := t.net.carryMessage(link{target, t.address}); err != nil {
		return answer{err: t.net.senderError(err)}
	}
	return a
}

// senderError returns err once the sender can know of it: a lost message is noticed only by a timeout.
func (n *Network) senderError(err error) error {
	if errors.Is(err, errLost) {
		if closed := n.sleepOrClose(lossNotice); closed != nil {
			return closed
		}
	}
	return err
}

func (t *Transport) handleRequest(request any, body *snapshotStream) answer {
	responses := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: request, RespChan: responses}
	if body != nil {
		rpc.Reader = body.start()
	}
	if fast := t.fastPath(request); fast != nil {
		fast(rpc)
	} else if err := t.enqueueRequest(rpc); err != nil {
		return answer{err: err}
	}
	select {
	case r := <-responses:
		return answer{response: r.Response, err: r.Error}
	case <-t.closed:
		return answer{err: errRefused}
	case <-t.net.done:
		return answer{err: errClosed}
	}
}

func (t *Transport) enqueueRequest(rpc raft.RPC) error {
	select {
	case t.inbox <- rpc:
		return nil
	case <-t.closed:
		return errRefused
	case <-t.net.done:
		return errClosed
	}
}

// fastPath returns the heartbeat handler if raft.NetworkTransport would consider request a heartbeat.
func (t *Transport) fastPath(request any) func(raft.RPC) {
	a, ok := request.(*raft.AppendEntriesRequest)
	if !ok || a.Term == 0 || a.Addr == nil {
		return nil
	}
	if a.PrevLogEntry != 0 || a.PrevLogTerm != 0 || len(a.Entries) != 0 || a.LeaderCommitIndex != 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heartbeat
}
