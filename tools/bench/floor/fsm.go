package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/hashicorp/raft"
)

type fsm struct {
	mu     sync.Mutex
	ledger *ledger
}

var _ raft.BatchingFSM = (*fsm)(nil)

func newFSM() *fsm { return &fsm{ledger: newLedger()} }

// ApplyBatch answers each entry with a slice of outcomes, one for each command, or with an error.
func (f *fsm) ApplyBatch(entries []*raft.Log) []any {
	answers := make([]any, len(entries))
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, entry := range entries {
		if entry.Type == raft.LogCommand && entry.Data[0] != kindNothing {
			answers[i] = f.applyEntry(entry.Data)
		}
	}
	return answers
}

// Apply is ApplyBatch with one entry.
func (f *fsm) Apply(entry *raft.Log) any { return f.ApplyBatch([]*raft.Log{entry})[0] }

func (f *fsm) applyEntry(entry []byte) any {
	var outcomes []outcome
	for len(entry) > 0 {
		c, rest, err := readCommand(entry)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, f.ledger.execute(c))
		entry = rest
	}
	return outcomes
}

// Snapshot copies the allocations: the tree is fixed, and what its nodes have in use follows from them.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	paths := make(map[*node]string, len(f.ledger.nodes))
	for path, n := range f.ledger.nodes {
		paths[n] = path
	}
	return &snapshot{allocations: maps.Clone(f.ledger.allocations), paths: paths}, nil
}

// Restore replaces the ledger.
func (f *fsm) Restore(source io.ReadCloser) error {
	var records map[string]record
	if err := json.NewDecoder(source).Decode(&records); err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}
	restored := newLedger()
	for id, r := range records {
		if got := restored.allocate([]byte(id), []byte(r.Leaf), r.Held); got != done {
			return fmt.Errorf("restore allocation %s at %s: outcome %d", id, r.Leaf, got)
		}
	}
	f.mu.Lock()
	f.ledger = restored
	f.mu.Unlock()
	return source.Close()
}

type usage struct {
	// Allocations is the number of allocations.
	Allocations int
	// Used is the use of both resources by node. Nodes without use are left out.
	Used map[string]amounts
}

func (f *fsm) usage() usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := usage{Allocations: len(f.ledger.allocations), Used: make(map[string]amounts)}
	for path, n := range f.ledger.nodes {
		if n.used != (amounts{}) {
			u.Used[path] = n.used
		}
	}
	return u
}

type record struct {
	Leaf string
	Held amounts
}

type snapshot struct {
	allocations map[string]allocation
	paths       map[*node]string
}

// Persist writes the snapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	records := make(map[string]record, len(s.allocations))
	for id, a := range s.allocations {
		records[id] = record{s.paths[a.leaf], a.held}
	}
	if err := json.NewEncoder(sink).Encode(records); err != nil {
		_ = sink.Cancel() // the first error counts
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return sink.Close()
}

// Release does nothing: the garbage collector frees the copy.
func (*snapshot) Release() {}
