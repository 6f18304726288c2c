package raftguard_test

import (
	"io"
	"testing"
	"testing/synctest"
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

// TestARequestThatTellsNothingNewWaits: it is sent when the log has more, and otherwise after a pause; what tells
// something is sent at once.
func TestARequestThatTellsNothingNewWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := raftguard.NewLogCache(raft.NewInmemStore(), 8, 1<<20)
		store := func(index uint64) {
			if err := logs.StoreLog(&raft.Log{Index: index, Term: 1}); err != nil {
				t.Error(err)
			}
		}
		address, follower := raft.NewInmemTransportWithTimeout("n2", time.Hour)
		_, inner := raft.NewInmemTransportWithTimeout("n1", time.Hour)
		inner.Connect(address, follower)
		leader := raftguard.NewTransport(inner, raftguard.PauseWhenIdle(logs.Appended))
		pipeline, err := leader.AppendEntriesPipeline("n2", address)
		if err != nil {
			t.Fatal(err)
		}
		store(5)
		for _, step := range []struct {
			what           string
			commit, behind uint64
			entries        []*raft.Log
			want           time.Duration
		}{
			{"the first", 4, 5, nil, 0},
			{"an entry is not committed yet", 4, 5, nil, 0},
			{"a new commit index", 5, 5, nil, 0},
			{"nothing new", 5, 5, nil, 100 * time.Millisecond},
			{"an entry", 5, 5, []*raft.Log{{Index: 6}}, 0},
			{"the log has more already", 5, 4, nil, 0},
			{"the log gets more meanwhile", 5, 5, nil, 30 * time.Millisecond},
		} {
			if step.want == 30*time.Millisecond {
				time.AfterFunc(step.want, func() { store(6) })
			}
			began := time.Now()
			_, err := pipeline.AppendEntries(&raft.AppendEntriesRequest{
				Term: 1, PrevLogEntry: step.behind, LeaderCommitIndex: step.commit, Entries: step.entries,
			}, new(raft.AppendEntriesResponse))
			if took := time.Since(began); err != nil || took != step.want {
				t.Errorf("%s: sent after %v, not %v: %v", step.what, took, step.want, err)
			}
		}
		if err := pipeline.Close(); err != nil {
			t.Error(err)
		}
	})
}
