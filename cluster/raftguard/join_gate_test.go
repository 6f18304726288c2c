package raftguard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

func sendThrough(t *testing.T, inner *raft.InmemTransport, body *strings.Reader) <-chan raft.RPCResponse {
	t.Helper()
	answers := make(chan raft.RPCResponse, 1)
	_, peer := raft.NewInmemTransportWithTimeout("peer", time.Minute)
	inner.Connect("peer", peer)
	peer.Connect(inner.LocalAddr(), inner)
	go func() {
		var response raft.InstallSnapshotResponse
		err := peer.InstallSnapshot("node", inner.LocalAddr(),
			&raft.InstallSnapshotRequest{Size: body.Size()}, &response,
			body)
		answers <- raft.RPCResponse{Response: &response, Error: err}
	}()
	return answers
}

func TestNothingPassesAClosedJoinGate(t *testing.T) {
	t.Parallel()
	_, inner := raft.NewInmemTransportWithTimeout("node", time.Minute)
	gate := raftguard.NewJoinGate(inner)
	guarded := raftguard.NewTransport(gate)
	t.Cleanup(func() {
		if err := guarded.Close(); err != nil {
			t.Error(err)
		}
	})
	messages := guarded.Consumer()
	body := strings.NewReader("a snapshot")
	if answer := <-sendThrough(t, inner, body); !errors.Is(answer.Error, raftguard.ErrNotAdmitted) {
		t.Errorf("got %v, want ErrNotAdmitted", answer.Error)
	}
	if body.Len() != 0 {
		t.Errorf("%d bytes of the snapshot are left for the next message", body.Len())
	}
	if gate.IsOpen() {
		t.Error("a message opened the gate")
	}
	gate.Open()
	gate.Open()
	answers := sendThrough(t, inner, strings.NewReader("another"))
	rpc := <-messages
	if _, isInstall := rpc.Command.(*raft.InstallSnapshotRequest); !isInstall {
		t.Errorf("got a %T", rpc.Command)
	}
	rpc.Respond(&raft.InstallSnapshotResponse{Success: true}, nil)
	if answer := <-answers; answer.Error != nil {
		t.Error(answer.Error)
	}
}
