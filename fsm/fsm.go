package fsm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// ErrHalted is returned by all methods once the state machine has met an entry that it cannot apply and must not skip.
var ErrHalted = errors.New("the state machine has halted")

// Options configure an FSM.
type Options struct {
	// Bounds of the ledger; the zero value means quota.DefaultBounds.
	Bounds quota.Bounds
	// Formats are those that the state machine understands; nil for those of this version.
	Formats *Formats
	// OnHalt is called once with the reason when the state machine halts. It runs on raft's goroutine and must not block.
	// The node must then stop serving, because its state ends before the entry that it could not apply.
	OnHalt func(error)
	// OnCheckpoint is called for each checkpoint with the state to compare. It runs on raft's goroutine and must not
	// block. Nil ignores checkpoints.
	OnCheckpoint func(*Checkpointed)
}

// Outcomes is raft's response for a command entry: one outcome for each command, in order.
type Outcomes []ledger.Outcome

// FSM is the state machine of one node. Raft calls Apply, ApplyBatch, Snapshot and Restore from one goroutine; all
// other methods are safe for concurrent use.
type FSM struct {
	options Options

	mu sync.RWMutex // protects the fields below
	// ledger is replaced as a whole by Restore and by a replacement.
	ledger  *ledger.Ledger
	applied uint64
	// format is the feature level: the newest format of the applied entries, or the level that one of them raised it to.
	format uint32
	// chain is a digest of all applied entries and their outcomes, equal on replicas that agree (P9).
	chain [sha256.Size]byte
	// chainNumbers is room for what extendChain hashes, used again for each entry.
	chainNumbers []byte
	halted       error
	// scanner decodes entries.
	scanner entryScanner
	// replacement is the state that log entries are transferring; nil most of the time.
	replacement *replacement
	// feed remembers the watch events of applied entries; newEvents are those not yet appended to it.
	feed      *feed
	newEvents []WatchEvent
	// lastEvent is the index of the last entry with an event; 0 for none. A feed that begins with a
	// snapshot remembers from there on: between it and the snapshot nothing has happened.
	lastEvent uint64
	// appliedChanged is closed and replaced whenever applied grows, dueChanged whenever the time of the next Expire
	// changes.
	appliedChanged, dueChanged chan struct{}
	// records are the audit records, which a replacement of the ledger keeps. recordsChanged is closed and replaced
	// whenever they have changed, once that batch is applied.
	records        audit.Ring
	recordsChanged chan struct{}

	// book is the access book of the ledger, for readers without the lock.
	book atomic.Pointer[access.Book]
}

var _ raft.BatchingFSM = (*FSM)(nil)

// New returns a state machine with an empty ledger.
func New(o Options) *FSM {
	if o.Bounds == (quota.Bounds{}) {
		o.Bounds = quota.DefaultBounds()
	}
	f := &FSM{
		options: o, ledger: ledger.New(o.Bounds), format: quota.FirstFormat, feed: newFeed(),
		scanner:        entryScanner{formats: o.Formats},
		appliedChanged: make(chan struct{}), dueChanged: make(chan struct{}), recordsChanged: make(chan struct{}),
	}
	f.publishBook()
	return f
}

// Apply applies one entry; see ApplyBatch.
func (f *FSM) Apply(entry *raft.Log) any { return f.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch applies committed entries in order. The response of a command entry is Outcomes, that of a replacement
// step is Replaced, or either is an error wrapping ErrHalted; that of any other entry is nil.
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
	before, head := f.nextDue(), f.records.Head()
	for i, entry := range entries {
		responses[i] = f.apply(entry)
	}
	f.notifyRecords(head)
	f.feed.append(f.newEvents, f.applied, f.ledger.Reader().Now())
	clear(f.newEvents) // do not keep their records alive
	f.newEvents = f.newEvents[:0]
	f.publishBook()
	f.notifyWaiters(before)
}

// publishBook must be called before a caller learns that an entry was applied: a token works as soon as the call that
// made it has returned.
func (f *FSM) publishBook() {
	if book := f.ledger.Reader().Book(); f.book.Load() != book {
		f.book.Store(book)
	}
}

// notifyWaiters wakes callers of WaitApplied, and those of NextDue if its answer changed. The lock must be held.
func (f *FSM) notifyWaiters(before dueTime) {
	close(f.appliedChanged)
	f.appliedChanged = make(chan struct{})
	if f.nextDue() != before {
		close(f.dueChanged)
		f.dueChanged = make(chan struct{})
	}
}

// dueTime is when the ledger needs its next Expire, if it does.
type dueTime struct {
	at    quota.Instant
	waits bool
}

func (f *FSM) nextDue() dueTime {
	at, waits := f.ledger.Reader().NextDue()
	return dueTime{at, waits}
}

func (f *FSM) apply(entry *raft.Log) any {
	if f.halted != nil {
		return f.halted
	}
	if entry.Type != raft.LogCommand {
		f.applied = entry.Index
		return nil
	}
	e, err := f.scanner.decodeEntry(entry.Data)
	if err != nil {
		// A node that skipped an entry would diverge silently from the others.
		f.halted = fmt.Errorf("%w: log entry %d: %w", ErrHalted, entry.Index, err)
		return f.halted
	}
	if e.replacement != nil {
		return f.applyReplacement(entry, e)
	}
	outcomes, before := make(Outcomes, len(e.commands)), len(f.newEvents)
	run := callerCursor{runs: e.callers}
	for i, c := range e.commands {
		from := ledger.Origin{Caller: run.next(), Index: entry.Index}
		outcomes[i] = f.ledger.ApplyFrom(e.stamp, from, c)
		f.recordCommand(from, c, outcomes[i])
		for _, fact := range f.ledger.TakeFacts() {
			number := uint32(len(f.newEvents) - before + 1)
			f.newEvents = append(f.newEvents, WatchEvent{Position{entry.Index, number}, fact, outcomes[i].Now, from.Caller})
		}
	}
	f.applied = entry.Index
	f.setFormat(max(f.format, e.format, e.level))
	if len(f.newEvents) > before {
		f.lastEvent = entry.Index
	}
	f.extendChain(entry.Data, outcomes, f.newEvents[before:])
	if e.checkpoint && f.options.OnCheckpoint != nil {
		f.options.OnCheckpoint(&Checkpointed{snapshot: f.newSnapshot()})
	}
	return outcomes
}

// setFormat must be called with the lock held, at the end of an entry, because the entry's own commands still follow
// the earlier rules. It always informs the ledger, which may have been replaced.
func (f *FSM) setFormat(format uint32) {
	f.format = format
	f.ledger.SetFormat(format)
}
