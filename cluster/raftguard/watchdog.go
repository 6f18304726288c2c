package raftguard

import (
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Watchdog is a raft.SnapshotStore that detects installed snapshots that bring no progress because the log contradicts
// them (raft#697), and requests a restart of raft with RepairTail, which is impossible while raft runs.
type Watchdog struct {
	raft.SnapshotStore
	logs    raft.LogStore
	limit   int
	onStuck func()
	logger  hclog.Logger

	mu       sync.Mutex
	installs int // in a row, each of which found the log in contradiction
}

// NewWatchdog compares each snapshot that is stored in inner with logs. onStuck is called on a goroutine of its own
// when limit consecutive snapshots contradict the log, once per such series. A single contradiction is not a fault:
// raft recovers by itself if the tail is shorter than the snapshot.
func NewWatchdog(
	inner raft.SnapshotStore, logs raft.LogStore, limit int, onStuck func(), logger hclog.Logger,
) *Watchdog {
	return &Watchdog{SnapshotStore: inner, logs: logs, limit: limit, onStuck: onStuck, logger: logger}
}

// Create opens a snapshot that is compared with the log once it is complete.
func (w *Watchdog) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64, transport raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := w.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		return nil, err
	}
	return &watchdogSink{SnapshotSink: sink, complete: sync.OnceFunc(func() { w.compareWithLog(index, term) })}, nil
}

type watchdogSink struct {
	raft.SnapshotSink
	complete func()
}

// Close completes the snapshot. raft and its FSMs both call it, so only the first call counts.
func (s *watchdogSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	s.complete()
	return nil
}

func (w *Watchdog) compareWithLog(index, term uint64) {
	stuck, err := logContradicts(w.logs, index, term)
	if err != nil {
		w.logger.Error("cannot compare a snapshot with the log", "index", index, "error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !stuck {
		w.installs = 0
		return
	}
	w.installs++
	if w.installs != w.limit {
		return
	}
	w.logger.Warn("snapshots are installed again and again without progress; raft must restart to drop its log",
		"index", index, "term", term, "installs", w.installs)
	go w.onStuck()
}
