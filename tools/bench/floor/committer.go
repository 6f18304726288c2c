package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// entriesInFlight is how many log entries are on their way at once. With two, one entry is filled and sent while the
	// disks sync the other.
	entriesInFlight = 2
	// mostEntryBytes bounds one entry, unless a single call is larger.
	mostEntryBytes = 512 << 10
	// applyTimeout bounds how long raft may take to accept an entry.
	applyTimeout = 10 * time.Second
)

type proposal struct {
	commands []byte
	count    int
	result   chan proposalResult
}

type proposalResult struct {
	outcomes []outcome
	err      error
}

type applier interface {
	Apply(entry []byte, timeout time.Duration) raft.ApplyFuture
}

// committer joins the commands of concurrent calls into log entries: an entry has everything that arrived while the
// entries before it were on their way. It is safe for concurrent use.
type committer struct {
	raft    applier
	mu      sync.Mutex
	waiting []*proposal
	// ready has a value when proposals may wait.
	ready chan struct{}
}

// newCommitter starts the goroutines of a committer, which run as long as the process.
func newCommitter(r applier) *committer {
	c := &committer{raft: r, ready: make(chan struct{}, 1)}
	for range entriesInFlight {
		go c.commitLoop()
	}
	return c
}

// propose commits the commands of one call and returns an outcome for each. An error does not say whether they were
// applied.
func (c *committer) propose(ctx context.Context, commands []byte, count int) ([]outcome, error) {
	if count == 0 {
		return nil, nil
	}
	p := &proposal{commands, count, make(chan proposalResult, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, p)
	c.mu.Unlock()
	c.signalReady()
	select {
	case r := <-p.result:
		return r.outcomes, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *committer) signalReady() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *committer) commitLoop() {
	for range c.ready {
		if batch, entry := c.takeBatch(); len(batch) > 0 {
			c.commit(batch, entry)
		}
	}
}

// takeBatch removes the oldest proposals, as many as one entry may have, and returns them with that entry.
func (c *committer) takeBatch() (batch []*proposal, entry []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, count := 0, 0
	for count < len(c.waiting) && (count == 0 || size+len(c.waiting[count].commands) <= mostEntryBytes) {
		size += len(c.waiting[count].commands)
		count++
	}
	batch, c.waiting = c.waiting[:count:count], c.waiting[count:]
	if len(c.waiting) > 0 {
		c.signalReady()
	} else {
		c.waiting = nil
	}
	entry = make([]byte, 0, size)
	for _, p := range batch {
		entry = append(entry, p.commands...)
	}
	return batch, entry
}

func (c *committer) commit(batch []*proposal, entry []byte) {
	future := c.raft.Apply(entry, applyTimeout)
	outcomes, err := outcomesOf(future)
	for _, p := range batch {
		if err == nil && len(outcomes) < p.count {
			err = fmt.Errorf("the entry has %d outcomes too few", p.count-len(outcomes))
		}
		if err != nil {
			p.result <- proposalResult{err: err}
			continue
		}
		p.result <- proposalResult{outcomes: outcomes[:p.count]}
		outcomes = outcomes[p.count:]
	}
}

func outcomesOf(future raft.ApplyFuture) ([]outcome, error) {
	if err := future.Error(); err != nil {
		return nil, err
	}
	switch answer := future.Response().(type) {
	case []outcome:
		return answer, nil
	case error:
		return nil, answer
	default:
		return nil, fmt.Errorf("the FSM answered with %T", answer)
	}
}
