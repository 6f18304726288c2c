package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// MaxBackupBytes is the maximum size of a backup file that can be restored.
const MaxBackupBytes = fsm.MaxReplacementBytes

// RestoreResult describes a state that was restored.
type RestoreResult struct {
	// Index is the log index at which the state was replaced.
	Index uint64
	// Backup describes the backup file.
	Backup backup.Contents
	// Header is the header of the restored state.
	Header ledger.Header
}

// RestoreOptions control a restore.
type RestoreOptions struct {
	// Size is the size of the file in bytes; 0 if unknown. A file of another size is refused.
	Size int64
	// RaiseLevel allows the restore to raise the feature level of the cluster to the one that the backup needs.
	RaiseLevel bool
}

// Restore replaces the state of the whole cluster by that of a backup, at one index of the log, or changes nothing
// (docs/adr/0039). It works only on the established leader, one restore at a time. All checks that do not need the file
// are made before the file is read. The file is read once, up to MaxBackupBytes, into a temporary file of the data
// folder, and verified before its first byte is proposed.
//
// An error is an *Error: unless it says NotApplied, the state may have been replaced or may still be.
func (n *Node) Restore(ctx context.Context, o RestoreOptions, file io.Reader) (RestoreResult, error) {
	l, err := n.leader.established()
	if err != nil {
		return RestoreResult{}, err
	}
	return n.restorer.restore(ctx, l, o, file)
}

type restorer struct {
	self, dataDir string
	bounds        quota.Bounds
	formats       *fsm.Formats
	ledger        *fsm.FSM
	disk          *diskMonitor
	levels        *levels
	lock          sync.Mutex // held while this node replaces the state
}

func (r *restorer) restore(ctx context.Context, l *leadership, o RestoreOptions, file io.Reader,
) (RestoreResult, error) {
	if !r.lock.TryLock() {
		return RestoreResult{}, newError(Busy, true, nil, "another restore is under way on node %s; wait for its end",
			r.self)
	}
	defer r.lock.Unlock()
	if err := r.disk.checkRestoreSpace(restoreCopies * o.Size); err != nil {
		return RestoreResult{}, err
	}
	state, err := r.createScratchFile()
	if err != nil {
		return RestoreResult{}, newError(Busy, true, err, "the backup cannot be kept in the data folder of node %s",
			r.self)
	}
	defer state.Close() //nolint:errcheck // the file has no name any more, so its content is lost anyway
	contents, err := r.readBackup(file, o.Size, state)
	if err != nil {
		return RestoreResult{}, err
	}
	if err := r.levels.checkAllUnderstand(contents.Format); err != nil {
		return RestoreResult{}, err
	}
	if err := r.checkLevel(contents.Format, o.RaiseLevel); err != nil {
		return RestoreResult{}, err
	}
	done, err := stateReplacement{leadership: l, id: rand.Text()}.replaceState(ctx, state, contents)
	return RestoreResult{Index: done.index, Backup: contents, Header: done.Header}, err
}

// stateReplacement sends one state through the log. Its entries bypass the proposal queue and go to raft one by one.
type stateReplacement struct {
	leadership *leadership
	id         string
}

type replacementStep struct {
	fsm.Replaced

	index uint64
}

// replaceState leaves the state unchanged if it fails before the last step.
func (r stateReplacement) replaceState(ctx context.Context, state *os.File,
	contents backup.Contents,
) (replacementStep, error) {
	if err := r.sendState(ctx, state, contents); err != nil {
		r.leadership.abandonInBackground(r.id)
		if full, ok := errors.AsType[*Error](err); ok && full.Reason == DiskFull {
			return replacementStep{}, full
		}
		return replacementStep{}, newError(LeadershipLost, true, err,
			"the backup could not be written to the log, and "+
				"nothing was changed; try again")
	}
	done, err := r.applyStep(fsm.EndReplacement(r.id, contents.SnapshotSHA256))
	if err != nil {
		r.leadership.abandonInBackground(r.id)
		return replacementStep{}, err
	}
	r.leadership.expiry.advanceClock(done.Header.Now.At)
	r.leadership.log.Warn("the state was replaced by a backup", "index", done.index, "cluster", contents.Cluster,
		"backup-index", contents.Index)
	return done, nil
}

func (r stateReplacement) sendState(ctx context.Context, state *os.File, contents backup.Contents) error {
	if _, err := state.Seek(0, io.SeekStart); err != nil {
		return err
	}

	if _, err := r.applyStep(fsm.BeginReplacement(r.id, uint64(contents.SnapshotBytes),
		contents.Format)); err != nil {
		return err
	}
	part := make([]byte, fsm.MaxReplacementPart)
	for ctx.Err() == nil {
		n, err := io.ReadFull(state, part)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if err := r.leadership.disk.checkRestoreSpace((restoreCopies - 1) * int64(n)); err != nil {
			return err
		}
		if _, err := r.applyStep(fsm.ReplacementPart(r.id, part[:n])); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r stateReplacement) applyStep(data []byte, err error) (replacementStep, error) {
	l := r.leadership
	if err != nil {
		return replacementStep{}, newError(TooLarge, true, err,
			"a step of the restore cannot be written as a log entry")
	}
	if l.ctx.Err() != nil {
		return replacementStep{}, l.leader.notLeaderError()
	}
	future := l.raft.Apply(data, l.config.scaleTimeout(stepTimeout))
	if err := future.Error(); err != nil {
		return replacementStep{}, l.leader.applyError(err)
	}
	answer, ok := future.Response().(fsm.Replaced)
	switch {
	case !ok:
		cause, _ := future.Response().(error)
		return replacementStep{}, newError(Halted, false, cause,
			"node %s stopped while it applied the entry", l.config.ID)
	case answer.Refused != nil:
		return replacementStep{}, newError(Busy, true, answer.Refused,
			"the restore was abandoned, and nothing was changed; "+
				"try again")
	}
	return replacementStep{answer, future.Index()}, nil
}

// abandonReplacement ends an unfinished replacement, which prevents snapshots while it lasts.
func (l *leadership) abandonReplacement(id string) error {
	if id == "" {
		return nil
	}
	data, err := fsm.AbandonReplacement(id)
	if err != nil {
		return fmt.Errorf("abandon an unfinished restore: %w", err)
	}
	return l.raft.Apply(data, l.config.scaleTimeout(stepTimeout)).Error()
}

// abandonInBackground retries until it succeeds or the leadership ends; the next leader then does it.
func (l *leadership) abandonInBackground(id string) {
	l.tasks.start(func() {
		for l.ctx.Err() == nil && l.abandonReplacement(id) != nil {
			sleepContext(l.ctx, leaderRetry)
		}
	})
}
