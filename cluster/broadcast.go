package cluster

import "sync"

// broadcast wakes everyone who waits for the next change of something.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed at the next call of wake. Take it before looking at what may change, or the change may be missed.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
