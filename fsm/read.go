package fsm

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// View calls fn with the ledger for reading and returns the log index of the state that fn saw. Writers wait meanwhile:
// fn must be short, must not keep the view, and must not call the state machine. View fails with ErrHalted after a
// halt.
func (f *FSM) View(fn func(ledger.Reader)) (uint64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.halted != nil {
		return 0, f.halted
	}
	fn(f.ledger.Reader())
	return f.applied, nil
}

// Sandbox is like View for calls that change the state and revert the change, such as dry runs. Readers and raft wait
// meanwhile.
func (f *FSM) Sandbox(fn func(ledger.Sandbox)) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted != nil {
		return 0, f.halted
	}
	fn(f.ledger.Sandbox())
	return f.applied, nil
}

// PlanSandbox is Sandbox for dry runs of configuration changes, which take long for a large tree but need only part of
// the ledger. If copying that part blocks writers for a shorter time, fn gets a copy and writers wait only while it is
// made.
func (f *FSM) PlanSandbox(fn func(ledger.Sandbox)) (uint64, error) {
	return f.copySandbox(ledger.Reader.WorthCopying, fn)
}

// WhatIfSandbox is PlanSandbox for one [ledger.Sandbox.WhatIf], which needs a copy if there are requests to evaluate.
func (f *FSM) WhatIfSandbox(fn func(ledger.Sandbox)) (uint64, error) {
	return f.copySandbox(ledger.Reader.NeedsCopy, fn)
}

func (f *FSM) copySandbox(needsCopy func(ledger.Reader) bool, fn func(ledger.Sandbox)) (uint64, error) {
	f.mu.Lock()
	if f.halted != nil {
		f.mu.Unlock()
		return 0, f.halted
	}
	if !needsCopy(f.ledger.Reader()) {
		defer f.mu.Unlock()
		fn(f.ledger.Sandbox())
		return f.applied, nil
	}
	image, format, applied := f.ledger.Snapshot(), f.format, f.applied
	f.mu.Unlock()
	scratch, err := ledger.CopyForPlans(f.options.Bounds, format, image)
	if err != nil {
		return 0, fmt.Errorf("copying the state at index %d for a plan: %w; this is a bug of the server", applied, err)
	}
	fn(scratch.Sandbox())
	return applied, nil
}

// Book is the access book after the entries that the last batch or restore applied. It takes no lock. A book never
// changes, so callers may keep it.
func (f *FSM) Book() *access.Book { return f.book.Load() }

// Applied is the index of the last entry that reached the state machine. Raft does not pass its own no-op and barrier
// entries on.
func (f *FSM) Applied() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.applied
}

// Now is the ledger time that was applied last.
func (f *FSM) Now() quota.Instant {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ledger.Reader().Now()
}

// Format is the feature level: the newest format of the applied entries, or the level that one of them raised it to.
// Every member that follows this log understands it, or has halted.
func (f *FSM) Format() uint32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.format
}

// Unused is true as long as no configuration was applied and the feature level was not raised.
func (f *FSM) Unused() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.format == quota.FirstFormat && f.ledger.Header().Revision == 0
}

// NextDue returns when the ledger needs its next Expire, which may be in the past, and false if it needs none. The
// channel is closed when the answer has changed.
func (f *FSM) NextDue() (at quota.Instant, waits bool, changed <-chan struct{}) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	next := f.nextDue()
	return next.at, next.waits, f.dueChanged
}

// ReadFeed reads up to most watch events from the feed, and at least one if there is one, after a position. The
// position comes from this node, from another one, or is [After] the index of a read. The error is ErrForgotten. A
// reader that views the ledger and then reads the events after the viewed index misses none and sees none twice.
func (f *FSM) ReadFeed(after Position, most int) (FeedPage, error) {
	return f.feed.read(after, most)
}

// Halted is the reason for which the state machine halted, or nil.
func (f *FSM) Halted() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.halted
}

// Chain returns the index of the last applied entry and the digest of everything applied. Replicas at the same index
// must have the same digest.
func (f *FSM) Chain() (index uint64, digest [32]byte) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.applied, f.chain
}

// WaitApplied waits until an entry at or after index has reached the state machine. It fails when ctx ends or the state
// machine halts. See Applied for entries that never reach the state machine.
func (f *FSM) WaitApplied(ctx context.Context, index uint64) error {
	for {
		f.mu.RLock()
		applied, halted, moved := f.applied, f.halted, f.appliedChanged
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
