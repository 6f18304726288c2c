package cluster

import (
	"context"
	"sync"
	"time"
)

// readBatcher confirms many reads with few queries. A read never shares a query that was sent before the read arrived:
// it joins the next batch, together with all reads that arrive meanwhile.
type readBatcher struct {
	// confirmIndex sends one query. It runs on a goroutine of startTask, one at a time.
	confirmIndex func() (uint64, error)
	// startTask runs a function on a goroutine. It returns false if the node or the leadership has ended.
	startTask func(func()) bool
	// observeBatch is called after every query; it may be nil.
	observeBatch func(reads int, took time.Duration, err error)
	// abandoned is closed when queries are no longer answered; nil if that cannot happen.
	abandoned <-chan struct{}

	mu      sync.Mutex
	next    *readBatch
	running bool
}

type readBatch struct {
	done  chan struct{}
	reads int
	index uint64
	err   error
}

func (r *readBatcher) waitConfirmed(ctx context.Context) (uint64, error) {
	batch, err := r.joinNextBatch()
	if err != nil {
		return 0, err
	}
	select {
	case <-batch.done:
		return batch.index, batch.err
	case <-r.abandoned:
		return 0, newError(LeadershipLost, true, nil, "this node stopped to act as leader before the read was confirmed; "+
			"ask the new leader")
	case <-ctx.Done():
		return 0, newError(Deadline, true, ctx.Err(), "the read was not confirmed in time")
	}
}

func (r *readBatcher) joinNextBatch() (*readBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &readBatch{done: make(chan struct{})}
	}
	batch := r.next
	batch.reads++
	if r.running {
		return batch, nil
	}
	if !r.startTask(r.runBatches) {
		r.next = nil
		return nil, newError(ShuttingDown, true, nil, "this node is shutting down; ask another one")
	}
	r.running = true
	return batch, nil
}

func (r *readBatcher) runBatches() {
	for current := r.takeBatch(); current != nil; current = r.takeBatch() {
		r.answerBatch(current)
	}
}

// answerBatch sends one query for all reads that joined the batch before it was taken.
func (r *readBatcher) answerBatch(current *readBatch) {
	began := time.Now()
	current.index, current.err = r.confirmIndex()
	if r.observeBatch != nil {
		r.observeBatch(current.reads, time.Since(began), current.err)
	}
	close(current.done)
}

func (r *readBatcher) takeBatch() *readBatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.next
	r.next = nil
	r.running = current != nil
	return current
}
