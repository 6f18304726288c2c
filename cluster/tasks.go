package cluster

import (
	"context"
	"sync"
)

// taskGroup are goroutines that somebody waits for. Once they are being waited for, no new one starts.
type taskGroup struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// start runs f on a goroutine, or answers false when it is too late.
func (t *taskGroup) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Go(f)
	return true
}

// wait ends the intake and waits for all tasks, at most until ctx ends.
func (t *taskGroup) wait(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return waitOrTimeout(ctx, t.group.Wait)
}

// waitOrTimeout waits until f returns or ctx ends, whichever is first; then f goes on alone.
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

// changeNotifier wakes everyone who waits for the next change of something.
type changeNotifier struct {
	mu sync.Mutex
	ch chan struct{}
}

// nextChange is closed at the next call of wake. Take it before looking at what may change, or the change may be missed.
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
