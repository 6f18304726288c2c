package raftguard_test

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// scripted is an inner transport that answers every AppendEntries after one second, as scripted by the test.
type scripted struct {
	raft.Transport
	response raft.AppendEntriesResponse
	err      error
	handlers int
}

func (s *scripted) AppendEntries(
	_ raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	time.Sleep(time.Second)
	*resp = s.response
	return s.err
}

func (s *scripted) SetHeartbeatHandler(func(raft.RPC)) { s.handlers++ }

func sendHeartbeat(t *raftguard.Transport, id raft.ServerID, term uint64) error {
	return t.AppendEntries(id, raft.ServerAddress(id), &raft.AppendEntriesRequest{Term: term},
		&raft.AppendEntriesResponse{})
}

func TestAckedSinceCountsOnlyWhatProvesLeadership(t *testing.T) {
	accepted := raft.AppendEntriesResponse{Term: 7, Success: true}
	three, five := []raft.ServerID{"a", "b", "c"}, []raft.ServerID{"a", "b", "c", "d", "e"}
	tests := map[string]struct {
		response raft.AppendEntriesResponse
		err      error
		to       []raft.ServerID
		voters   []raft.ServerID
		term     uint64
		since    time.Duration // after the first message was sent
		want     bool
	}{
		"alone":              {voters: []raft.ServerID{"a"}, term: 7, want: true},
		"no voters":          {voters: nil, term: 7},
		"no voter answered":  {voters: three, term: 7},
		"one of two others":  {response: accepted, to: []raft.ServerID{"b"}, voters: three, term: 7, want: true},
		"one of four others": {response: accepted, to: []raft.ServerID{"b"}, voters: five, term: 7},
		"two of four others": {
			response: accepted, to: []raft.ServerID{"b", "c"}, voters: five, term: 7,
			since: -time.Second, want: true,
		},
		"the same one twice": {response: accepted, to: []raft.ServerID{"b", "b"}, voters: five, term: 7},
		"a non-voter":        {response: accepted, to: []raft.ServerID{"x"}, voters: three, term: 7},
		"self is no longer a voter": {
			response: accepted, to: []raft.ServerID{"b"},
			voters: []raft.ServerID{"b", "c", "d"}, term: 7,
		},
		"answered after, but sent before": {
			response: accepted, to: []raft.ServerID{"b"}, voters: three, term: 7,
			since: time.Nanosecond,
		},
		"in another term": {response: accepted, to: []raft.ServerID{"b"}, voters: three, term: 8},
		"refused": {
			response: raft.AppendEntriesResponse{Term: 7}, to: []raft.ServerID{"b"},
			voters: three, term: 7,
		},
		"accepted in a later term": {
			response: raft.AppendEntriesResponse{Term: 8, Success: true},
			to:       []raft.ServerID{"b"}, voters: three, term: 7,
		},
		"an error": {
			response: accepted, err: errors.New("lost"), to: []raft.ServerID{"b"},
			voters: three, term: 7,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := raftguard.NewTransport(&scripted{response: test.response, err: test.err})
				began := time.Now()
				for _, id := range test.to {
					if err := sendHeartbeat(transport, id, 7); !errors.Is(err, test.err) {
						t.Fatal(err)
					}
				}
				if got := transport.AckedSince(test.term, began.Add(test.since), test.voters, "a"); got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestAckOfAnEarlierTermDoesNotReplaceALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &scripted{response: raft.AppendEntriesResponse{Success: true}}
		transport := raftguard.NewTransport(inner)
		began := time.Now()
		mustStore(t, sendHeartbeat(transport, "b", 8))
		mustStore(t, sendHeartbeat(transport, "b", 7))
		if !transport.AckedSince(8, began, []raft.ServerID{"a", "b", "c"}, "a") {
			t.Error("the answer in term 8 is forgotten")
		}
	})
}

func TestTransportKeepsHeartbeatsOutOfTheFastPath(t *testing.T) {
	inner := &scripted{}
	raftguard.NewTransport(inner).SetHeartbeatHandler(func(raft.RPC) {})
	if inner.handlers != 0 {
		t.Error("the handler reached the inner transport")
	}
	raftguard.NewTransport(inner, raftguard.UnsafeAsyncHeartbeats()).SetHeartbeatHandler(func(raft.RPC) {})
	if inner.handlers != 1 {
		t.Error("the negative control does not turn the guard off")
	}
}

func TestTransportPassesOnWhatInnerOffers(t *testing.T) {
	_, b := raft.NewInmemTransport("b")
	_, inner := raft.NewInmemTransport("a")
	transport := raftguard.NewTransport(inner)
	transport.Connect("b", b)
	if _, err := inner.AppendEntriesPipeline("b", "b"); err != nil {
		t.Errorf("Connect did not reach inner: %v", err)
	}
	transport.Disconnect("b")
	if _, err := inner.AppendEntriesPipeline("b", "b"); err == nil {
		t.Error("Disconnect did not reach inner")
	}
	transport.Connect("b", b)
	mustStore(t, transport.Close())
	if _, err := inner.AppendEntriesPipeline("b", "b"); err == nil {
		t.Error("Close did not reach inner")
	}
}

func TestTransportWithoutPreVoteLeavesItToTheVote(t *testing.T) {
	transport := raftguard.NewTransport(&scripted{})
	var resp raft.RequestPreVoteResponse
	mustStore(t, transport.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{Term: 3}, &resp))
	if !resp.Granted || resp.Term != 3 {
		t.Errorf("got %+v", resp)
	}
	mustStore(t, transport.Close())
	transport.Connect("b", nil)
	transport.Disconnect("b")
	transport.DisconnectAll()
}

// TestRealTransportHandsHeartbeatsToTheMainLoop checks the guard with the transport that servers use: a heartbeat is
// delivered by Consumer, while stock raft would have handled it on the connection.
func TestRealTransportHandsHeartbeatsToTheMainLoop(t *testing.T) {
	for name, options := range map[string][]raftguard.TransportOption{
		"guarded": nil,
		"stock":   {raftguard.UnsafeAsyncHeartbeats()},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := raftguard.NewTransport(realTransport(t), options...)
			var async atomic.Int64
			receiver.SetHeartbeatHandler(func(rpc raft.RPC) {
				async.Add(1)
				rpc.Respond(&raft.AppendEntriesResponse{Term: 1, Success: true}, nil)
			})
			stop, queued := make(chan struct{}), make(chan int, 1)
			go func() { queued <- answerAppends(receiver, stop) }()

			sender := raftguard.NewTransport(realTransport(t))
			began := time.Now()
			heartbeat := &raft.AppendEntriesRequest{
				RPCHeader: raft.RPCHeader{Addr: []byte("a")}, Term: 1,
				Leader: []byte("a"),
			}
			mustStore(t, sender.AppendEntries("b", receiver.LocalAddr(), heartbeat, &raft.AppendEntriesResponse{}))
			close(stop)
			if n := <-queued; (n == 1) == (name == "stock") || n+int(async.Load()) != 1 {
				t.Errorf("%d heartbeats were queued, %d handled outside of the main loop", n, async.Load())
			}
			if !sender.AckedSince(1, began, []raft.ServerID{"a", "b"}, "a") {
				t.Error("the answer was not noted")
			}
		})
	}
}

func realTransport(t *testing.T) *raft.NetworkTransport {
	t.Helper()
	transport, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, 5*time.Second, io.Discard)
	mustStore(t, err)
	t.Cleanup(func() { mustStore(t, transport.Close()) })
	return transport
}

func answerAppends(transport raft.Transport, stop <-chan struct{}) int {
	for count := 0; ; {
		select {
		case rpc := <-transport.Consumer():
			count++
			rpc.Respond(&raft.AppendEntriesResponse{Term: 1, Success: true}, nil)
		case <-stop:
			return count
		}
	}
}
