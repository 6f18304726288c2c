package cluster

import (
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
)

// instrumentedFSM is the FSM given to raft: the ledger, with every operation timed for the Observer.
type instrumentedFSM struct {
	*fsm.FSM

	observer Observer
}

var _ raft.BatchingFSM = instrumentedFSM{}

// applyResponse is raft's response to a command entry.
type applyResponse struct {
	outcomes     fsm.Outcomes
	began, ended time.Time
}

// ApplyBatch applies committed entries in order.
func (w instrumentedFSM) ApplyBatch(entries []*raft.Log) []any {
	began, commands := time.Now(), 0
	responses := w.FSM.ApplyBatch(entries)
	ended := time.Now()
	for i, response := range responses {
		if outcomes, ok := response.(fsm.Outcomes); ok {
			responses[i] = applyResponse{outcomes: outcomes, began: began, ended: ended}
			commands += len(outcomes)
		}
	}
	w.observer.Applied(len(entries), commands, ended.Sub(began))
	return responses
}

// Snapshot captures the state of the ledger for a snapshot.
func (w instrumentedFSM) Snapshot() (raft.FSMSnapshot, error) {
	began := time.Now()
	snapshot, err := w.FSM.Snapshot()
	if err != nil {
		w.observer.SnapshotEnded(SnapshotReport{FreezeTime: time.Since(began), Err: err})
		return nil, err
	}
	return instrumentedSnapshot{FSMSnapshot: snapshot, observer: w.observer, captureTime: time.Since(began)}, nil
}

// Restore replaces the ledger by a snapshot.
func (w instrumentedFSM) Restore(from io.ReadCloser) error {
	began := time.Now()
	err := w.FSM.Restore(from)
	w.observer.Restored(time.Since(began), err)
	return err
}

type instrumentedSnapshot struct {
	raft.FSMSnapshot

	observer    Observer
	captureTime time.Duration
}

// Persist writes the snapshot.
func (s instrumentedSnapshot) Persist(sink raft.SnapshotSink) error {
	began, counted := time.Now(), &countingSink{SnapshotSink: sink}
	err := s.FSMSnapshot.Persist(counted)
	s.observer.SnapshotEnded(SnapshotReport{
		FreezeTime: s.captureTime, WriteTime: time.Since(began), Bytes: counted.bytes,
		Err: err,
	})
	return err
}

type countingSink struct {
	raft.SnapshotSink

	bytes int64
}

func (s *countingSink) Write(p []byte) (int, error) {
	n, err := s.SnapshotSink.Write(p)
	s.bytes += int64(n)
	return n, err
}
