package host

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/walstore"
)

// A part of the log that is copied with one write.
const (
	copiedEntries = 512
	copiedBytes   = 1 << 20
)

// Migration says what MigrateLog did.
type Migration struct {
	// ID and Cluster are the identity of the folder.
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	// From is the log store that the folder had, To the one that it has now.
	From string `json:"from"`
	To   string `json:"to"`
	// First and Last are the entries that were copied and compared; 0 and 0 if the log is empty.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Changed is false if the folder had the log store already.
	Changed bool `json:"changed"`
}

// MigrateLog converts the log in the data folder of a stopped node to another log store. It copies the log, reads back
// and compares every entry, records the new log store in raft.db with one atomic write, and only then removes the old
// log. It can be interrupted at any time and run again; a server that starts in between uses the old log, or the new
// one if it was recorded, and removes the other.
//
// It refuses a folder that is in use, damaged or incomplete; then nothing was changed.
func MigrateLog(dataDir, to string, logger hclog.Logger) (Migration, error) {
	return migrateLog(dataDir, to, logger, func(string) error { return nil })
}

// migrateLog calls after with the name of each step that is done, and stops if it returns an error.
func migrateLog(dataDir, to string, logger hclog.Logger, after func(step string) error) (done Migration, err error) {
	if to != cluster.LogStoreBolt && to != cluster.LogStoreWAL {
		return Migration{}, fmt.Errorf("there is no log store %q: allowed are %q and %q", to, cluster.LogStoreWAL,
			cluster.LogStoreBolt)
	}
	r, err := openStopped(dataDir, logger)
	if err != nil {
		return Migration{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	done = Migration{ID: r.owner.ID, Cluster: r.owner.Cluster, From: r.log.kind, To: to}
	if r.log.kind == to {
		return done, nil
	}
	m := &migration{stoppedNode: r, to: to, after: after}
	if done.First, done.Last, err = m.sourceRange(); err != nil {
		return Migration{}, err
	}
	if err := m.run(done.First, done.Last); err != nil {
		return Migration{}, err
	}
	done.Changed = true
	return done, nil
}

type migration struct {
	*stoppedNode

	to    string
	after func(step string) error
}

// sourceRange verifies the folder and returns which entries are copied: the last ones without a gap. Entries before a
// gap are in a snapshot, and raft does not read them.
func (m *migration) sourceRange() (first, last uint64, err error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(m.folder, snapshotsKept, m.logger)
	if err != nil {
		return 0, 0, fmt.Errorf("open the snapshots in %s: %w", m.folder, err)
	}
	if err := m.prepare(snapshots); err != nil {
		return 0, 0, err
	}
	history, err := raftguard.CheckHistory(m.logs, m.store, snapshots)
	if err != nil {
		return 0, 0, err
	}
	if history.Lost != "" {
		return 0, 0, fmt.Errorf("%s has lost data (%s): start the server, which says what to do", m.folder, history.Lost)
	}
	if first, err = m.logs.FirstIndex(); err != nil {
		return 0, 0, err
	}
	if last, err = m.logs.LastIndex(); err != nil {
		return 0, 0, err
	}
	var entry raft.Log
	for i := first; i < last; i++ {
		if err := m.logs.GetLog(i, &entry); errors.Is(err, raft.ErrLogNotFound) {
			first = i + 1
		} else if err != nil {
			return 0, 0, err
		}
	}
	return first, last, nil
}

func (m *migration) run(first, last uint64) error {
	logs := folderLogs{m.folder, m.store, m.logger}
	target, err := m.openTarget(logs)
	if err != nil {
		return err
	}
	err = m.copyEntries(target, first, last)
	if err := errors.Join(err, target.close()); err != nil {
		return err
	}
	if err := m.after("copied"); err != nil {
		return err
	}
	if target, err = logs.reopen(m.to); err != nil {
		return err
	}
	err = m.compareEntries(target, first, last)
	if err := errors.Join(err, target.close()); err != nil {
		return err
	}
	if err := m.after("compared"); err != nil {
		return err
	}
	if err := logs.recordKind(m.to); err != nil {
		return err
	}
	if err := m.after("recorded"); err != nil {
		return err
	}
	return m.removeSource(logs)
}

// openTarget makes the new log, without what an interrupted migration left of it.
func (m *migration) openTarget(logs folderLogs) (*logStore, error) {
	var err error
	if m.to == cluster.LogStoreBolt {
		err = logs.emptyBolt()
	} else {
		err = m.createWAL(logs)
	}
	if err == nil {
		err = m.after("created")
	}
	if err != nil {
		return nil, err
	}
	return logs.reopen(m.to)
}

func (m *migration) createWAL(logs folderLogs) error {
	known, err := readEpochs(m.store)
	if err == nil {
		err = walstore.Create(logs.walConfig())
	}
	if err != nil || known.Current == "" {
		return err
	}
	return walstore.WriteEpoch(logs.walConfig().Folder, string(known.Current))
}

// reopen opens the log of a kind without regard to which one the folder has.
func (l folderLogs) reopen(kind string) (*logStore, error) {
	if kind == cluster.LogStoreBolt {
		return l.boltLog(), nil
	}
	log, err := walstore.Open(l.walConfig())
	if err != nil {
		return nil, err
	}
	return &logStore{LogStore: log, kind: kind, close: log.Close}, nil
}

func (m *migration) copyEntries(target *logStore, first, last uint64) error {
	if last == 0 {
		return nil
	}
	to := raftguard.NewChecksum(target)
	var part []*raft.Log
	size := 0
	for i := first; i <= last; i++ {
		entry := &raft.Log{}
		if err := m.logs.GetLog(i, entry); err != nil {
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		part, size = append(part, entry), size+len(entry.Data)
		if i < last && len(part) < copiedEntries && size < copiedBytes {
			continue
		}
		if err := to.StoreLogs(part); err != nil {
			return fmt.Errorf("copy the log entries %d to %d: %w", part[0].Index, i, err)
		}
		if err := m.after("copying"); err != nil {
			return err
		}
		part, size = nil, 0
	}
	return nil
}

func (m *migration) compareEntries(target *logStore, first, last uint64) error {
	copied := raftguard.NewChecksum(target)
	from, err1 := copied.FirstIndex()
	to, err2 := copied.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("read the copy of the log: %w", err)
	}
	if from != first || to != last {
		return fmt.Errorf("the copy of the log reaches from entry %d to %d instead of %d to %d; nothing was changed", from,
			to, first, last)
	}
	for i := first; i <= last && last > 0; i++ {
		var old, now raft.Log
		if err := m.logs.GetLog(i, &old); err != nil {
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		if err := copied.GetLog(i, &now); err != nil {
			return fmt.Errorf("read the copy of log entry %d: %w", i, err)
		}
		if !sameEntry(old, now) {
			return fmt.Errorf("the copy of log entry %d differs from it; nothing was changed: check the disk", i)
		}
	}
	return nil
}

func sameEntry(a, b raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data) &&
		bytes.Equal(a.Extensions, b.Extensions) && a.AppendedAt.Equal(b.AppendedAt)
}

// removeSource removes the old log. The folder does not use it any more, so a failure only leaves it there until the
// next start.
func (m *migration) removeSource(logs folderLogs) error {
	old := m.log
	m.log = nil
	if err := old.close(); err != nil {
		return err
	}
	if old.kind == cluster.LogStoreBolt {
		return logs.emptyBolt()
	}
	return logs.removeWAL()
}
