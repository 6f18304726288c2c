package fsm

import (
	"fmt"
	"io"
	"math"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota/ledger"
)

// Info describes a snapshot.
type Info struct {
	// Format is the format of the snapshot: the feature level that a member needs to read it.
	Format uint32 `json:"format"`
	// Index is the log index of the state.
	Index uint64 `json:"index"`
	// LedgerTimeMs is ledger time, WallMs the wall clock of the last entry, for people.
	LedgerTimeMs int64 `json:"ledger_time_ms"`
	WallMs       int64 `json:"wall_ms"`
	// Revision is the configuration revision, Fence the last assigned fence.
	Revision uint64 `json:"revision"`
	Fence    uint64 `json:"fence"`
	Counts   Counts `json:"counts"`
}

// Counts are the numbers of records in a snapshot.
type Counts struct {
	Trees     uint64 `json:"trees"`
	Nodes     uint64 `json:"nodes"`
	Revisions uint64 `json:"revisions"`
	Items     uint64 `json:"items"`
	Held      uint64 `json:"held"`
	Ended     uint64 `json:"ended"`
	Waiting   uint64 `json:"waiting"`
	Events    uint64 `json:"events"`
}

// StateSnapshot is the state at one moment. It stays unchanged while writers continue.
type StateSnapshot struct{ *snapshot }

// TakeSnapshot captures the present state. Its cost depends on the number of nodes, not of allocations. It fails with
// ErrHalted.
func (f *FSM) TakeSnapshot() (StateSnapshot, error) {
	f.mu.Lock() // a snapshot marks the shared pages
	defer f.mu.Unlock()
	if f.halted != nil {
		return StateSnapshot{}, f.halted
	}
	return StateSnapshot{f.newSnapshot()}, nil
}

// Info describes the snapshot. It walks over all records to count them.
func (s StateSnapshot) Info() Info {
	h := s.header
	info := Info{
		Format: h.GetFormat(), Index: h.GetIndex(),
		LedgerTimeMs: h.GetTimeMs(), WallMs: h.GetWallMs(),
		Revision: h.GetRevision(), Fence: h.GetFence(), Counts: countImage(s.image),
	}
	return info
}

// Write writes the snapshot. Its memory use is independent of the size of the state.
func (s StateSnapshot) Write(out io.Writer) error { return s.write(out) }

func countImage(image *ledger.Snapshot) Counts {
	c := Counts{
		Trees: uint64(len(image.Trees())), Revisions: uint64(len(image.Revisions())),
		Events: uint64(len(image.Events())),
	}
	for _, t := range image.Trees() {
		c.Nodes += uint64(len(t.Nodes))
	}
	for range image.Items() {
		c.Items++
	}
	for range image.Held() {
		c.Held++
	}
	for range image.Ended() {
		c.Ended++
	}
	for range image.Waiting() {
		c.Waiting++
	}
	return c
}

// ReadSnapshot reads a snapshot to its end and verifies it like a restore: format, records, digest, and every invariant
// of the ledger. The options are those of the state machine that it is for.
func ReadSnapshot(source io.Reader, o Options) (Info, error) {
	f := New(o)
	if err := f.Restore(io.NopCloser(source)); err != nil {
		return Info{}, err
	}
	if fence := f.ledger.Header().Fence; fence > maxFence {
		return Info{}, fmt.Errorf(
			"read snapshot: the last fence in it is %d; beyond %d there would be no room for more", fence,
			uint64(maxFence))
	}
	state, err := f.TakeSnapshot()
	if err != nil {
		return Info{}, err
	}
	return state.Info(), nil
}

// Recovery is a state machine that replays the log of one surviving member. Its snapshots begin a new history: fences
// jump, because the lost members may have assigned fences that this log does not contain.
type Recovery struct{ *FSM }

// Snapshot captures the recovered state. An unfinished replacement is dropped.
func (r Recovery) Snapshot() (raft.FSMSnapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted != nil {
		return nil, r.halted
	}
	r.replacement = nil
	if fence := r.ledger.Header().Fence; fence > math.MaxUint64-2*FenceGap {
		return nil, fmt.Errorf("the last fence is %d; there is no room for more", fence)
	}
	r.ledger.Supersede(ledger.Header{}, FenceGap)
	return r.newSnapshot(), nil
}
