package gate

import (
	"context"
	"time"
)

// Source is a scheduler whose work is gated. Its methods are called concurrently for different works. Each may be
// repeated, and must then do nothing more; an error means that it is tried again.
type Source interface {
	// List returns all work that is there, ended work included as long as the scheduler knows it. It may lag behind the
	// scheduler.
	List(context.Context) ([]Work, error)
	// IsIdle reports whether no member of a work is open: all are closed, have ended or are gone. It asks the scheduler
	// itself, not a copy that may lag, because the allocation is then released. The labels are those of the work.
	IsIdle(ctx context.Context, key string, labels map[string]string) (bool, error)
	// Open opens the gate of a member. A member that is gone is not an error.
	Open(context.Context, Work, Member) error
	// Evict ends a member before a time; the zero time means at once. It returns when the member was told to end, and an
	// error if it must be told again.
	Evict(ctx context.Context, w Work, m Member, until time.Time, why string) error
	// Tell shows users how a work stands. It is called when that has changed.
	Tell(context.Context, Work, Status) error
}

// StatusKind is how a work stands.
type StatusKind int

// The kinds of a status.
const (
	// StatusIncomplete: not all members have arrived.
	StatusIncomplete StatusKind = iota + 1
	// StatusWaiting: its request is in the queue.
	StatusWaiting
	// StatusDenied: it does not fit into the limits, whatever ends.
	StatusDenied
	// StatusFailed: the request could not be made, or was refused.
	StatusFailed
	// StatusGranted: its allocation is held.
	StatusGranted
)

// Status says how a work stands.
type Status struct {
	Kind StatusKind
	// Text says why, in the words of Quorate, in at most MaxText bytes.
	Text string
}

// MaxText bounds the text of a status in bytes.
const MaxText = 1000
