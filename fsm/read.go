package fsm

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// View lends the ledger to fn for reading and answers the log index that fn saw. Writers wait meanwhile: fn must be
// short, must not keep the view, and must not call the state machine. It fails with ErrHalted once the state machine has halted.
func (f *FSM) View(fn func(ledger.View)) (uint64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.halted != nil {
		return 0, f.halted
	}
	fn(f.ledger.View())
	return f.applied, nil
}

// Sandbox lends the ledger to fn for questions that change the state and take that back, as dry runs do. Readers and raft
// wait meanwhile. Otherwise it is like View.
func (f *FSM) Sandbox(fn func(ledger.Sandbox)) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted != nil {
		return 0, f.halted
	}
	fn(f.ledger.Sandbox())
	return f.applied, nil
}

// PlanSandbox is Sandbox for dry runs of changes of the configuration: for a large tree they take long, but need little of
// the ledger. Where that blocks writers for a shorter time, fn gets a copy, and writers wait only while it is made.
func (f *FSM) PlanSandbox(fn func(ledger.Sandbox)) (uint64, error) {
	f.mu.Lock()
	if f.halted != nil {
		f.mu.Unlock()
		return 0, f.halted
	}
	if !f.ledger.View().WorthCopying() {
		defer f.mu.Unlock()
		fn(f.ledger.Sandbox())
		return f.applied, nil
	}
	image, level, applied := f.ledger.Snapshot(), f.ledger.Level(), f.applied
	f.mu.Unlock()
	scratch, err := ledger.CopyForPlans(f.options.Bounds, level, image)
	if err != nil {
		return 0, fmt.Errorf("copying the state at index %d for a plan: %w; this is a bug of the server", applied, err)
	}
	fn(scratch.Sandbox())
	return applied, nil
}

// Applied is the index of the last entry that reached the state machine. Raft does not hand it its own no-op and
// barrier entries.
func (f *FSM) Applied() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.applied
}

// Now is ledger time.
func (f *FSM) Now() quota.Instant {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ledger.View().Now()
}

// Format is the feature level: the newest format of an entry that was applied so far, or what one of them raised the level
// to. Whoever follows this log understands it, or has stopped.
func (f *FSM) Format() uint32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.format
}

// Unused is true as long as nothing was ever configured and the feature level was not raised.
func (f *FSM) Unused() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.format < RaisedFrom && f.ledger.Header().Revision == 0
}

// NextDue is when the ledger needs its next Expire, perhaps in the past, and false if it needs none. The channel is
// closed when the answer has changed.
func (f *FSM) NextDue() (at quota.Instant, waits bool, changed <-chan struct{}) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	next := f.nextDue()
	return next.at, next.waits, f.due
}

// News reads the feed: at most so many facts, at least one, behind a position that came from here, from another node, or
// is [After] the index of a read. The error is ErrForgotten. A reader that looks at the ledger and then reads the news after
// the index that it saw misses nothing and sees nothing twice.
func (f *FSM) News(after Position, most int) (Bulletin, error) { return f.feed.read(after, most) }

// Halted is the reason why the state machine has halted, or nil.
func (f *FSM) Halted() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.halted
}

// Chain is the digest over everything applied, and the index of its last entry. Replicas at the same index must have
// the same digest.
func (f *FSM) Chain() (index uint64, digest [32]byte) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.applied, f.chain
}

// WaitApplied waits until an entry at or after index has reached the state machine. It fails when ctx ends or the state
// machine halts. See Applied for entries that never reach it.
func (f *FSM) WaitApplied(ctx context.Context, index uint64) error {
	for {
		f.mu.RLock()
		applied, halted, moved := f.applied, f.halted, f.moved
		f.mu.RUnlock()
		switch {
		case halted != nil:
			return halted
		case applied >= index:
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
