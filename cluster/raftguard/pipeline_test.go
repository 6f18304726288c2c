package raftguard_test

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// TestSenderIsNotHeldUpByAnswersThatNobodyTakes reproduces what raft does when a follower refuses an entry under load:
// it consumes one answer while its sender is still sending.
func TestSenderIsNotHeldUpByAnswersThatNobodyTakes(t *testing.T) {
	t.Parallel()
	follower := refusingServer(t)
	inner, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, time.Minute, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	leader := raftguard.NewTransport(inner)
	t.Cleanup(func() { _ = leader.Close() })
	pipeline, err := leader.AppendEntriesPipeline("n2", follower)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- sendMany(pipeline, 10) }()
	if answer := <-pipeline.Consumer(); answer.Response().Success {
		t.Error("the follower accepted an entry")
	}
	select {
	case err := <-sent:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the sender hangs")
	}
	if err := pipeline.Close(); err != nil {
		t.Error(err)
	}
}

func sendMany(p raft.AppendPipeline, count int) error {
	for range count {
		if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1}, new(raft.AppendEntriesResponse)); err != nil {
			return err
		}
	}
	return nil
}

func refusingServer(t *testing.T) raft.ServerAddress {
	t.Helper()
	server, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, time.Minute, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = server.Close()
	})
	go func() {
		for {
			select {
			case rpc := <-server.Consumer():
				rpc.Respond(&raft.AppendEntriesResponse{Term: 1}, nil)
			case <-done:
				return
			}
		}
	}()
	return server.LocalAddr()
}
