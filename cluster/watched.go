package cluster

import (
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
)

// watched is the ledger under raft, with a look at the clock before and after.
type watched struct {
	*fsm.FSM

	observer Observer
}

var _ raft.BatchingFSM = watched{}

// applied is raft's response for a command entry.
type applied struct {
	outcomes     fsm.Outcomes
	began, ended time.Time
}

// ApplyBatch applies committed entries in order.
func (w watched) ApplyBatch(entries []*raft.Log) []any {
	began, commands := time.Now(), 0
	responses := w.FSM.ApplyBatch(entries)
	ended := time.Now()
	for i, response := range responses {
		if outcomes, ok := response.(fsm.Outcomes); ok {
			responses[i] = applied{outcomes: outcomes, began: began, ended: ended}
			commands += len(outcomes)
		}
	}
	w.observer.Applied(len(entries), commands, ended.Sub(began))
	return responses
}

// Snapshot freezes the ledger.
func (w watched) Snapshot() (raft.FSMSnapshot, error) {
	began := time.Now()
	frozen, err := w.FSM.Snapshot()
	if err != nil {
		w.observer.SnapshotEnded(SnapshotReport{Froze: time.Since(began), Err: err})
		return nil, err
	}
	return watchedSnapshot{FSMSnapshot: frozen, observer: w.observer, froze: time.Since(began)}, nil
}

// Restore replaces the ledger.
func (w watched) Restore(from io.ReadCloser) error {
	began := time.Now()
	err := w.FSM.Restore(from)
	w.observer.Restored(time.Since(began), err)
	return err
}

type watchedSnapshot struct {
	raft.FSMSnapshot

	observer Observer
	froze    time.Duration
}

// Persist writes the snapshot.
func (s watchedSnapshot) Persist(sink raft.SnapshotSink) error {
	began, counted := time.Now(), &countedSink{SnapshotSink: sink}
	err := s.FSMSnapshot.Persist(counted)
	s.observer.SnapshotEnded(SnapshotReport{Froze: s.froze, Wrote: time.Since(began), Bytes: counted.bytes, Err: err})
	return err
}

// countedSink counts what is written.
type countedSink struct {
	raft.SnapshotSink

	bytes int64
}

func (s *countedSink) Write(p []byte) (int, error) {
	n, err := s.SnapshotSink.Write(p)
	s.bytes += int64(n)
	return n, err
}
