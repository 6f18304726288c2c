package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/explain"
	"github.com/quorate/quorate/quota/ledger/internal/image"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Ledger is the replicated state and the rules by which commands change it. It is not safe for concurrent use: fsm owns
// the lock.
type Ledger struct{ state *state.State }

// New returns an empty ledger that follows the rules of the first format.
func New(b quota.Bounds) *Ledger { return &Ledger{state.NewState(b)} }

// Apply is ApplyFrom for a command without an origin.
func (l *Ledger) Apply(s quota.Stamp, c quota.Command) state.Outcome {
	return l.ApplyFrom(s, state.Origin{Index: 1}, c)
}

// ApplyFrom carries out one command at a point of ledger time and returns its outcome. It carries out all of a command
// or nothing. The outcome depends only on the ledger and the arguments.
func (l *Ledger) ApplyFrom(s quota.Stamp, from state.Origin, c quota.Command) state.Outcome {
	return applyFrom(l.state, s, from, c)
}

// TakeFacts returns the changes of allocations by the last command, in order, and clears them.
func (l *Ledger) TakeFacts() []state.Fact { return l.state.TakeFacts() }

// TakeChanges returns the changes of configuration or access that the last command made, in order, and clears them. All
// are there, whatever the caller of the command may see. They must not be changed.
func (l *Ledger) TakeChanges() []quota.Change { return l.state.TakeChanges() }

// Reader returns a reader that sees everything.
func (l *Ledger) Reader() read.Reader { return read.New(l.state, nil) }

// Sandbox returns a sandbox that sees everything, for a caller that excludes all others.
func (l *Ledger) Sandbox() Sandbox { return newSandbox(l.state) }

// BeginChanges makes a ledger that was restored from a snapshot remember changes from a log index on.
func (l *Ledger) BeginChanges(index uint64) { l.state.Forest.Forgotten = index }

// Header is the header of a snapshot taken now.
func (l *Ledger) Header() image.Header { return image.HeaderOf(l.state) }

// Snapshot captures the present state. Its cost depends on the number of nodes, not of allocations.
func (l *Ledger) Snapshot() *image.Snapshot { return image.TakeSnapshot(l.state) }

// Check recomputes all derived state and returns the first invariant that is broken. It visits the whole ledger:
// use it in tests, after a restore, and in builds with the tag "invariants".
func (l *Ledger) Check() error { return image.Check(l.state) }

// SetFormat sets the format of the cluster's log, whose rules the ledger follows from then on. It must be called
// between the same two commands on every replica. The format is not part of a snapshot: the caller keeps it and calls
// SetFormat after a restore.
func (l *Ledger) SetFormat(format uint32) { l.state.Format = format }

// Format is the format whose rules the ledger follows; the first in a new ledger.
func (l *Ledger) Format() uint32 { return l.state.Format }

// Supersede prepares a ledger that was restored from a backup to replace another one, which has the header former.
// Time, revisions and all numbers continue from the larger value of the two ledgers, and fences from gap beyond it, so
// that no fence that was assigned after the backup is assigned again. Civil time continues from the later one too.
//
// Webhooks begin anew with what is remembered of events, and tell their receivers of the gap.
//
// Open requests for limits become stale: it is not known which of them were rejected or withdrawn after the backup.
//
// Leases get their whole TTL again, and waiting requests their whole keep span, because their callers could not renew
// them here and renewals after the backup are not known.
func (l *Ledger) Supersede(former image.Header, gap uint64) { supersede(l.state, former, gap) }

// Restorer builds a ledger from the parts of a snapshot: policies and trees, then revisions and items, then held, ended
// and waiting allocations, each in the order of the snapshot. After any error it must not be used any more.
type Restorer struct{ *image.Restorer }

// NewRestorer starts with the header of a snapshot.
func NewRestorer(b quota.Bounds, h Header) *Restorer { return &Restorer{image.NewRestorer(b, h)} }

// Finish verifies every invariant and returns the ledger.
func (r *Restorer) Finish() (*Ledger, error) {
	s, err := r.Restorer.Finish()
	if err != nil {
		return nil, err
	}
	return &Ledger{s}, nil
}

// CopyForPlans builds a ledger from a snapshot that answers dry runs of configuration changes exactly as the original
// would, and carries one change out as the original would. It knows only those ended allocations that such dry runs ask
// about, and must not be used for anything else.
func CopyForPlans(b quota.Bounds, format uint32, snapshot *image.Snapshot) (*Ledger, error) {
	s, err := image.CopyForPlans(b, format, snapshot)
	if err != nil {
		return nil, err
	}
	return &Ledger{s}, nil
}

// DenialHolders are who is in the way now at the limits that the last denied request of an id exceeded, as far as the
// caller of the reader sees them. There are none if the denial is not remembered, or is not the caller's to see.
func DenialHolders(r Reader, id string) []quota.LevelHolders { return explain.DenialHolders(r, id) }
