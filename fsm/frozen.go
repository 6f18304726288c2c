package fsm

import (
	"fmt"
	"io"
	"math"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Info says what a snapshot holds.
type Info struct {
	// Format is that of the snapshot, EntryFormat the newest of an entry that made it: the feature level that a member needs.
	Format      uint32 `json:"format"`
	EntryFormat uint32 `json:"entry_format"`
	// Index is the log index of the state.
	Index uint64 `json:"index"`
	// LedgerTimeMs is ledger time, WallMs the wall clock of the last entry, for people.
	LedgerTimeMs int64 `json:"ledger_time_ms"`
	WallMs       int64 `json:"wall_ms"`
	// Revision is that of the configuration, Fence the last one given.
	Revision uint64 `json:"revision"`
	Fence    uint64 `json:"fence"`
	Counts   Counts `json:"counts"`
}

// Counts are how many of each there are.
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

// Frozen is the state at one moment. Writers go on meanwhile.
type Frozen struct{ *snapshot }

// Freeze takes the state as it is now; it costs the number of nodes, not of allocations. It fails with ErrHalted.
func (f *FSM) Freeze() (Frozen, error) {
	f.mu.Lock() // freezing marks what is shared from then on
	defer f.mu.Unlock()
	if f.halted != nil {
		return Frozen{}, f.halted
	}
	return Frozen{f.freeze()}, nil
}

// Info says what is frozen. It walks over all of it to count.
func (s Frozen) Info() Info {
	h := s.header
	info := Info{
		Format: h.GetFormat(), EntryFormat: max(firstFormat, h.GetEntryFormat()), Index: h.GetIndex(), LedgerTimeMs: h.GetTimeMs(), WallMs: h.GetWallMs(),
		Revision: h.GetRevision(), Fence: h.GetFence(), Counts: countImage(s.image),
	}
	return info
}

// Write writes the snapshot; the memory that it takes does not grow with the state.
func (s Frozen) Write(out io.Writer) error { return s.write(out) }

func countImage(image *ledger.Snapshot) Counts {
	c := Counts{
		Trees: uint64(len(image.Trees())), Revisions: uint64(len(image.Revisions())), Events: uint64(len(image.Events())),
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

// ReadSnapshot reads a snapshot to its end and verifies all of it, as a restore does: format, records, digest, and every
// invariant of the ledger. The zero bounds are quota.DefaultBounds.
func ReadSnapshot(source io.Reader, bounds quota.Bounds) (Info, error) {
	f := New(Options{Bounds: bounds})
	if err := f.Restore(io.NopCloser(source)); err != nil {
		return Info{}, err
	}
	if fence := f.ledger.Header().Fence; fence > maxFence {
		return Info{}, fmt.Errorf("read snapshot: the last fence in it is %d; beyond %d there would be no room for more", fence, uint64(maxFence))
	}
	frozen, err := f.Freeze()
	if err != nil {
		return Info{}, err
	}
	return frozen.Info(), nil
}

// Recovery is a state machine that collects what one surviving log holds. Its snapshots begin a new history: fences jump,
// because the members that are lost may have given some that this log does not know of.
type Recovery struct{ *FSM }

// Snapshot freezes what was recovered. A replacement of the state that did not come to its end never will.
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
	return r.freeze(), nil
}
