package main

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// fakeRaft keeps entries in flight until the test ends them.
type fakeRaft struct{ entries chan *fakeFuture }

type fakeFuture struct {
	raft.ApplyFuture
	entry  []byte
	ended  chan struct{}
	answer any
	err    error
}

func (f *fakeRaft) Apply(entry []byte, _ time.Duration) raft.ApplyFuture {
	future := &fakeFuture{entry: entry, ended: make(chan struct{})}
	f.entries <- future
	return future
}

func (f *fakeFuture) Error() error {
	<-f.ended
	return f.err
}

func (f *fakeFuture) Response() any { return f.answer }

func TestCallsJoinWhileEntriesAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeRaft{entries: make(chan *fakeFuture, 8)}
		c := newCommitter(fake)
		answers := make(map[string]chan []outcome)
		propose := func(commands string, count int) {
			answered := make(chan []outcome, 1)
			answers[commands] = answered
			go func() {
				outcomes, err := c.propose(t.Context(), []byte(commands), count)
				if err != nil {
					t.Error(err)
				}
				answered <- outcomes
			}()
			synctest.Wait()
		}
		propose("1", 1)
		propose("2", 1)
		propose("345", 3)
		propose("6", 1)
		if len(fake.entries) != entriesInFlight {
			t.Fatalf("%d entries are in flight, want %d", len(fake.entries), entriesInFlight)
		}
		(<-fake.entries).end([]outcome{done}, nil)
		(<-fake.entries).end([]outcome{denied}, nil)
		synctest.Wait()
		joined := <-fake.entries
		if string(joined.entry) != "3456" {
			t.Errorf("the third entry has %q, want the commands of both calls", joined.entry)
		}
		joined.end([]outcome{done, unknownID, usedID, denied}, nil)
		for commands, want := range map[string][]outcome{
			"1": {done}, "2": {denied}, "345": {done, unknownID, usedID}, "6": {denied},
		} {
			if got := <-answers[commands]; !slices.Equal(got, want) {
				t.Errorf("call %s is answered with %v, want %v", commands, got, want)
			}
		}
		close(c.ready)
	})
}

func TestFailedEntriesFailTheirCalls(t *testing.T) {
	broken := errors.New("no leader")
	for name, end := range map[string]struct {
		answer any
		err    error
	}{
		"raft refuses":            {nil, broken},
		"the FSM fails":           {broken, nil},
		"an outcome is missing":   {[]outcome{}, nil},
		"the answer is not known": {42, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := &fakeRaft{entries: make(chan *fakeFuture, 1)}
				c := newCommitter(fake)
				go func() { (<-fake.entries).end(end.answer, end.err) }()
				if outcomes, err := c.propose(t.Context(), []byte("1"), 1); err == nil {
					t.Errorf("outcomes %v without an error", outcomes)
				}
				close(c.ready)
			})
		})
	}
}

func (f *fakeFuture) end(answer any, err error) {
	f.answer, f.err = answer, err
	close(f.ended)
}

func TestLargeCallsGetTheirOwnEntries(t *testing.T) {
	c := &committer{ready: make(chan struct{}, 1)}
	for _, size := range []int{mostEntryBytes - 1, 1, 1, mostEntryBytes + 1} {
		c.waiting = append(c.waiting, &proposal{commands: make([]byte, size), count: 1})
	}
	for _, want := range []int{mostEntryBytes, 1, mostEntryBytes + 1, 0} {
		if _, entry := c.takeBatch(); len(entry) != want {
			t.Errorf("an entry has %d bytes, want %d", len(entry), want)
		}
	}
}
