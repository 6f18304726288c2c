package fsm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// ErrHalted is answered by everything once the state machine has met an entry that it must not skip.
var ErrHalted = errors.New("the state machine has halted")

// Options configure an FSM.
type Options struct {
	// Bounds of the ledger; the zero value means quota.DefaultBounds.
	Bounds quota.Bounds
	// OnHalt is told once why the state machine has halted, on raft's goroutine; it must not block. The node must then
	// stop serving: its state ends before the entry that it could not apply.
	OnHalt func(error)
	// OnCheckpoint is given what is to be compared of each checkpoint, on raft's goroutine; it must not block. Nil ignores them.
	OnCheckpoint func(*Checkpointed)
}

// Outcomes is raft's response for a command entry: one outcome for each command, in order.
type Outcomes []ledger.Outcome

// FSM is the state machine of one node. Raft calls Apply, ApplyBatch, Snapshot and Restore from one goroutine; everything
// else may be called from any.
type FSM struct {
	options Options

	mu sync.RWMutex // protects the fields below
	// ledger is replaced as a whole by Restore.
	ledger  *ledger.Ledger
	applied uint64
	// format is the feature level: the newest of an entry that was applied so far, or what one of them raised it to.
	format uint32
	// chain is a digest over all applied entries and their outcomes: equal on replicas that agree (P9).
	chain  [sha256.Size]byte
	halted error
	// replacement is what of another state has come through the log so far; nil most of the time.
	replacement *replacement
	// feed remembers what the entries did, news those that are not in it yet.
	feed *feed
	news []News
	// moved is closed and replaced whenever applied grows, due whenever the ledger needs its next Expire at another instant.
	moved, due chan struct{}
}

var _ raft.BatchingFSM = (*FSM)(nil)

// New returns a state machine with an empty ledger.
func New(o Options) *FSM {
	if o.Bounds == (quota.Bounds{}) {
		o.Bounds = quota.DefaultBounds()
	}
	ledger := ledger.New(o.Bounds)
	ledger.SetLevel(firstFormat)
	return &FSM{options: o, ledger: ledger, format: firstFormat, feed: newFeed(), moved: make(chan struct{}), due: make(chan struct{})}
}

// Apply applies one entry; see ApplyBatch.
func (f *FSM) Apply(entry *raft.Log) any { return f.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch applies committed entries in order. The response of a command entry is Outcomes, or an error wrapping
// ErrHalted; that of any other entry is nil.
func (f *FSM) ApplyBatch(entries []*raft.Log) []any {
	responses := make([]any, len(entries))
	before := f.Halted()
	f.applyAll(entries, responses)
	if after := f.Halted(); before == nil && after != nil && f.options.OnHalt != nil {
		f.options.OnHalt(after)
	}
	return responses
}

func (f *FSM) applyAll(entries []*raft.Log, responses []any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.nextDue()
	for i, entry := range entries {
		responses[i] = f.apply(entry)
	}
	f.feed.append(f.news, f.applied, f.ledger.View().Now())
	clear(f.news) // it must not keep records alive
	f.news = f.news[:0]
	f.wake(before)
}

// wake tells who waits for an entry, and who waits for an instant if that is another one than before. The lock is held.
func (f *FSM) wake(before lapse) {
	close(f.moved)
	f.moved = make(chan struct{})
	if f.nextDue() != before {
		close(f.due)
		f.due = make(chan struct{})
	}
}

// lapse is when the ledger needs its next Expire, if it does.
type lapse struct {
	at    quota.Instant
	waits bool
}

func (f *FSM) nextDue() lapse {
	at, waits := f.ledger.View().NextDue()
	return lapse{at, waits}
}

func (f *FSM) apply(entry *raft.Log) any {
	if f.halted != nil {
		return f.halted
	}
	if entry.Type != raft.LogCommand {
		f.applied = entry.Index
		return nil
	}
	e, err := decodeEntry(entry.Data)
	if err != nil {
		// A node that skipped an entry would lie from then on.
		f.halted = fmt.Errorf("%w: log entry %d: %w", ErrHalted, entry.Index, err)
		return f.halted
	}
	if e.replacement != nil {
		return f.replace(entry, e)
	}
	outcomes, before := make(Outcomes, len(e.commands)), len(f.news)
	for i, c := range e.commands {
		outcomes[i] = f.ledger.Apply(e.stamp, c)
		for _, fact := range f.ledger.TakeFacts() {
			number := uint32(len(f.news) - before + 1)
			f.news = append(f.news, News{Position{entry.Index, number}, fact, outcomes[i].Now})
		}
	}
	f.applied = entry.Index
	f.setFormat(max(f.format, e.format, e.level))
	f.link(entry.Data, outcomes, f.news[before:])
	if e.checkpoint && f.options.OnCheckpoint != nil {
		f.options.OnCheckpoint(&Checkpointed{frozen: f.freeze()})
	}
	return outcomes
}

// setFormat must be called with the lock held, at the end of an entry: its own commands still follow the rules of before. The
// ledger is told each time, because it may be another one than before.
func (f *FSM) setFormat(format uint32) {
	f.format = format
	f.ledger.SetLevel(format)
}
