package cluster

import (
	"context"
	"sync"
	"time"
)

// rounds answers many callers with few questions. A caller never shares a question that was asked before it came: it
// joins the next one, together with all who came meanwhile.
type rounds struct {
	// ask runs on a goroutine of spawn, one at a time.
	ask func() (uint64, error)
	// spawn runs a function on a goroutine, or answers false if it is too late for that.
	spawn func(func()) bool
	// ended is told of every question; nil if nobody wants to know.
	ended func(reads int, took time.Duration, err error)

	mu      sync.Mutex
	next    *round
	running bool
}

type round struct {
	done  chan struct{}
	reads int
	index uint64
	err   error
}

// join waits for the answer to the next question, at most until ctx ends.
func (r *rounds) join(ctx context.Context) (uint64, error) {
	mine, err := r.enter()
	if err != nil {
		return 0, err
	}
	select {
	case <-mine.done:
		return mine.index, mine.err
	case <-ctx.Done():
		return 0, failure(Deadline, true, ctx.Err(), "the read was not confirmed in time")
	}
}

func (r *rounds) enter() (*round, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	mine := r.next
	mine.reads++
	if r.running {
		return mine, nil
	}
	if !r.spawn(r.run) {
		r.next = nil
		return nil, failure(ShuttingDown, true, nil, "this node is shutting down; ask another one")
	}
	r.running = true
	return mine, nil
}

func (r *rounds) run() {
	for current := r.take(); current != nil; current = r.take() {
		r.answer(current)
	}
}

// answer asks once, for all who joined a round before it was taken.
func (r *rounds) answer(current *round) {
	began := time.Now()
	current.index, current.err = r.ask()
	if r.ended != nil {
		r.ended(current.reads, time.Since(began), current.err)
	}
	close(current.done)
}

func (r *rounds) take() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.next
	r.next = nil
	r.running = current != nil
	return current
}
