package cluster

import (
	"context"
	"sync"
)

// tasks are goroutines that somebody waits for. Once they are being waited for, no new one starts.
type tasks struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// start runs f on a goroutine, or answers false when it is too late.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Go(f)
	return true
}

// wait ends the intake and waits for all tasks, at most until ctx ends.
func (t *tasks) wait(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return finish(ctx, t.group.Wait)
}

// finish waits until f returns or ctx ends, whichever is first; then f goes on alone.
func finish(ctx context.Context, f func()) error {
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
