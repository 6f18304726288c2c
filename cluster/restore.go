package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/fsm/backup"
	"github.com/quorate/quorate/quota/ledger"
)

// MaxBackupBytes bounds the file of a backup that can be restored.
const MaxBackupBytes = fsm.MaxReplacementBytes

// Restored says what has taken the place of the state.
type Restored struct {
	// Index is where in the log that happened.
	Index uint64
	// Backup is what the file held.
	Backup backup.Contents
	// Header is that of the state from then on.
	Header ledger.Header
}

// RestoreOptions say what may be restored.
type RestoreOptions struct {
	// Size is how many bytes the file has; 0 if that is not known. A file of another size is refused.
	Size int64
	// RaiseLevel lets the restore raise the feature level of the cluster to the one that the backup needs.
	RaiseLevel bool
}

// Restore replaces the state of the whole cluster by that of a backup, at one place of the log, or changes nothing
// (docs/adr/0039). Only the established leader can, and one restore at a time. What can be refused without the file is
// refused before a byte of it is read. The file is read once, at most MaxBackupBytes, and verified before the first byte of it
// is proposed; what is in it waits in a file of the data folder.
//
// An error is an *Error: unless it says NotApplied, the state may have been replaced, or may still be.
func (n *Node) Restore(ctx context.Context, o RestoreOptions, file io.Reader) (Restored, error) {
	if err := n.serving(); err != nil {
		return Restored{}, err
	}
	l := n.life.Load()
	if l == nil {
		return Restored{}, n.refuseToLead()
	}
	if !n.restoring.TryLock() {
		return Restored{}, failure(Busy, true, nil, "another restore is under way on node %s; wait for its end", n.config.ID)
	}
	defer n.restoring.Unlock()
	if err := n.restoreLevel(fsm.ReplacementFormat, o.RaiseLevel); err != nil {
		return Restored{}, err
	}
	if err := n.roomToRestore(restoreCopies * o.Size); err != nil {
		return Restored{}, err
	}
	state, err := n.scratch()
	if err != nil {
		return Restored{}, failure(Busy, true, err, "the backup cannot be kept in the data folder of node %s", n.config.ID)
	}
	defer state.Close() //nolint:errcheck // its name is gone already, and so is what is in it
	contents, err := n.readBackup(file, o.Size, state)
	if err != nil {
		return Restored{}, err
	}
	needed := max(fsm.ReplacementFormat, contents.Format, contents.EntryFormat)
	if err := n.understood(needed); err != nil {
		return Restored{}, err
	}
	if err := n.restoreLevel(needed, o.RaiseLevel); err != nil {
		return Restored{}, err
	}
	r := replacing{life: l, id: rand.Text()}
	done, err := r.run(ctx, state, contents)
	return Restored{Index: done.index, Backup: contents, Header: done.Header}, err
}

// replacing carries one state through the log. Its entries go to raft one by one, beside those of the queue.
type replacing struct {
	life *life
	id   string
}

// replaced is the answer to a step, and where in the log it is.
type replaced struct {
	fsm.Replaced

	index uint64
}

// run writes all steps. Whatever fails before the last one has changed nothing.
func (r replacing) run(ctx context.Context, state *os.File, contents backup.Contents) (replaced, error) {
	if err := r.send(ctx, state, contents); err != nil {
		r.life.giveUpLater(r.id)
		if full, is := errors.AsType[*Error](err); is && full.Reason == DiskFull {
			return replaced{}, full
		}
		return replaced{}, failure(LeadershipLost, true, err, "the backup did not get through, and nothing was changed; try again")
	}
	done, err := r.step(fsm.EndReplacement(r.id, contents.SnapshotSHA256))
	if err != nil {
		r.life.giveUpLater(r.id)
		return replaced{}, err
	}
	r.life.clock.reach(done.Header.Now.At)
	select {
	case r.life.moved <- struct{}{}:
	default:
	}
	r.life.node.log.Warn("the state was replaced by a backup", "index", done.index, "cluster", contents.Cluster, "backup-index", contents.Index)
	return done, nil
}

// send writes all steps but the last.
func (r replacing) send(ctx context.Context, state *os.File, contents backup.Contents) error {
	if _, err := state.Seek(0, io.SeekStart); err != nil {
		return err
	}

	if _, err := r.step(fsm.BeginReplacement(r.id, uint64(contents.SnapshotBytes), contents.EntryFormat)); err != nil {
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
		if err := r.life.node.roomToRestore((restoreCopies - 1) * int64(n)); err != nil {
			return err
		}
		if _, err := r.step(fsm.ReplacementPart(r.id, part[:n])); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// step writes one entry and waits until it is applied here.
func (r replacing) step(data []byte, err error) (replaced, error) {
	n := r.life.node
	if err != nil {
		return replaced{}, failure(TooLarge, true, err, "a step of the restore cannot be written as a log entry")
	}
	if r.life.ctx.Err() != nil {
		return replaced{}, n.refuseToLead()
	}
	future := n.raft.Apply(data, n.config.scaled(stepTimeout))
	if err := future.Error(); err != nil {
		return replaced{}, n.fromRaft(err)
	}
	return n.answered(future)
}

func (n *Node) answered(future raft.ApplyFuture) (replaced, error) {
	answer, ok := future.Response().(fsm.Replaced)
	switch {
	case !ok:
		cause, _ := future.Response().(error)
		return replaced{}, failure(Halted, false, cause, "node %s stopped while it applied the entry", n.config.ID)
	case answer.Refused != nil:
		return replaced{}, failure(Busy, true, answer.Refused, "the restore was given up, and nothing was changed; try again")
	}
	return replaced{answer, future.Index()}, nil
}

// giveUpReplacement ends one that was left unfinished: until then no snapshot can be taken.
func (l *life) giveUpReplacement(id string) error {
	if id == "" {
		return nil
	}
	data, err := fsm.AbandonReplacement(id)
	if err != nil {
		return fmt.Errorf("give up an unfinished restore: %w", err)
	}
	return l.node.raft.Apply(data, l.node.config.scaled(stepTimeout)).Error()
}

// giveUpLater tries until it succeeds or the leadership ends: then the next leader does it.
func (l *life) giveUpLater(id string) {
	l.tasks.start(func() {
		for l.ctx.Err() == nil && l.giveUpReplacement(id) != nil {
			after(l.ctx, leaderRetry)
		}
	})
}
