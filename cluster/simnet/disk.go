package simnet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// Disk is what survives the crash of a node: its log, its stable store and its snapshots. A test keeps one per node and
// starts raft on it again.
type Disk struct {
	// InmemStore is the log and the stable store.
	*raft.InmemStore
	// Snapshots is the snapshot store.
	Snapshots *SnapshotStore
}

// NewDisk makes an empty disk that retains the given number, at least 1, of snapshots.
func NewDisk(retain int) *Disk {
	return &Disk{InmemStore: raft.NewInmemStore(), Snapshots: NewSnapshotStore(retain)}
}

// SnapshotStore is a raft.SnapshotStore in memory. Unlike raft's own it lists only complete snapshots, retains several,
// and derives their ids from their content only, so that runs are repeatable.
type SnapshotStore struct {
	retain int

	mu   sync.Mutex
	kept []storedSnapshot // newest first
	made int
}

type storedSnapshot struct {
	meta  raft.SnapshotMeta
	state []byte
}

// NewSnapshotStore makes an empty store that retains the given number, at least 1, of snapshots.
func NewSnapshotStore(retain int) *SnapshotStore {
	return &SnapshotStore{retain: max(retain, 1)}
}

// Create opens a snapshot, which is listed once its sink is closed.
func (s *SnapshotStore) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	meta := raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d-%d", term, index, s.made), Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	}
	return &sink{store: s, meta: meta}, nil
}

// List returns the complete snapshots, newest first.
func (s *SnapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*raft.SnapshotMeta, len(s.kept))
	for i, stored := range s.kept {
		list[i] = &stored.meta
	}
	return list, nil
}

// Open returns the snapshot with that id.
func (s *SnapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stored := range s.kept {
		if stored.meta.ID == id {
			return &stored.meta, io.NopCloser(bytes.NewReader(stored.state)), nil
		}
	}
	return nil, nil, fmt.Errorf("simnet: no snapshot %s", id)
}

func (s *SnapshotStore) addSnapshot(stored storedSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append([]storedSnapshot{stored}, s.kept...)
	slices.SortStableFunc(s.kept, func(a, b storedSnapshot) int {
		return cmp.Or(cmp.Compare(b.meta.Term, a.meta.Term), cmp.Compare(b.meta.Index, a.meta.Index))
	})
	s.kept = s.kept[:min(len(s.kept), s.retain)]
}

type sink struct {
	store *SnapshotStore
	meta  raft.SnapshotMeta
	state bytes.Buffer
	ended bool
}

// Write appends to the state.
func (k *sink) Write(p []byte) (int, error) {
	if k.ended {
		return 0, errors.New("simnet: write to a snapshot that has ended")
	}
	return k.state.Write(p)
}

// ID returns the id of the snapshot.
func (k *sink) ID() string { return k.meta.ID }

// Close completes the snapshot. It is idempotent.
func (k *sink) Close() error {
	if k.ended {
		return nil
	}
	k.ended = true
	k.meta.Size = int64(k.state.Len())
	k.store.addSnapshot(storedSnapshot{meta: k.meta, state: k.state.Bytes()})
	return nil
}

// Cancel discards the snapshot, unless it is complete. It is idempotent.
func (k *sink) Cancel() error {
	k.ended = true
	return nil
}
