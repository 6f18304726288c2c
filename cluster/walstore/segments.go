package walstore

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

// stateKey is the key of the state under which the list of segments is stored.
var stateKey = []byte("quorate-wal-segments")

// StateStore stores small values durably; a raft.StableStore is one.
type StateStore interface {
	// Get returns the value of a key, or an error with the text "not found".
	Get(key []byte) ([]byte, error)
	// Set replaces the value of a key. It is atomic and returns once the value is on the disk.
	Set(key, value []byte) error
}

func loadState(state StateStore) (persisted types.PersistentState, err error) {
	raw, err := state.Get(stateKey)
	if err != nil && err.Error() == "not found" {
		return persisted, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &persisted)
	}
	if err != nil {
		return persisted, fmt.Errorf("read the list of log segments: %w", err)
	}
	return persisted, nil
}

func saveState(state StateStore, persisted types.PersistentState) error {
	raw, err := json.Marshal(persisted)
	if err == nil {
		err = state.Set(stateKey, raw)
	}
	if err != nil {
		return fmt.Errorf("write the list of log segments: %w", err)
	}
	return nil
}

// segmentTable is the list of segments. Without it raft-wal would use a second bbolt file, which is not verified.
type segmentTable struct {
	state  StateStore
	failed *failure
}

// Load returns the list; empty if there is none.
func (t *segmentTable) Load(string) (types.PersistentState, error) { return loadState(t.state) }

// CommitState replaces the list. raft-wal calls every codec by the number of its own, and refuses that when it opens
// the log again with another codec.
func (t *segmentTable) CommitState(persisted types.PersistentState) error {
	for i := range persisted.Segments {
		persisted.Segments[i].Codec = codecID
	}
	return t.failed.note(saveState(t.state, persisted))
}

// GetStable is not used: the stable store is another one.
func (t *segmentTable) GetStable(key []byte) ([]byte, error) { return t.state.Get(key) }

// SetStable is not used: the stable store is another one.
func (t *segmentTable) SetStable(key, value []byte) error { return t.state.Set(key, value) }

// Close does nothing: the state belongs to the caller.
func (t *segmentTable) Close() error { return nil }

// segmentFiler creates segment files and remembers if that fails.
type segmentFiler struct {
	types.SegmentFiler
	failed *failure
}

// Create creates a segment file. For the codec see CommitState.
func (f *segmentFiler) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = codecID
	writer, err := f.SegmentFiler.Create(info)
	return writer, f.failed.note(err)
}

// failure is the first error of the rotation to a new segment. The library rotates in the background and only logs the
// error; the next append then fails because the segment is sealed, which would not tell an operator that the disk is
// full.
type failure struct {
	mu    sync.Mutex
	cause error
}

func (f *failure) note(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil {
		f.cause = err
	}
	return err
}

func (f *failure) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil {
		return err
	}
	return fmt.Errorf("%w (the next segment could not be made: %w)", err, f.cause)
}
