package cluster

import (
	"context"
	"sync"
	"time"
)

// taskGroup is a set of goroutines to wait for. Once wait was called, no new one starts.
type taskGroup struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// start is false if wait was called already.
func (t *taskGroup) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Go(f)
	return true
}

// wait prevents new tasks from starting and waits for all tasks, or until ctx ends.
func (t *taskGroup) wait(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return waitOrTimeout(ctx, t.group.Wait)
}

// waitOrTimeout leaves f running in the background if ctx ends first.
func waitOrTimeout(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitForChange waits no longer than timeout. It is false if ctx has ended.
func waitForChange(ctx context.Context, changed <-chan struct{}, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type changeNotifier struct {
	mu sync.Mutex
	ch chan struct{}
}

// nextChange returns a channel that the next call of notifyAll closes. Get it before checking the state, or a change
// may be missed.
func (b *changeNotifier) nextChange() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *changeNotifier) notifyAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
