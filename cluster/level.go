package cluster

import (
	"context"
	"math"
	"time"

	"github.com/quorate/quorate/fsm"
)

// Level is the feature level of the cluster: the newest format that its log may have entries of.
type Level struct {
	// Now is the level that everybody has to understand who follows the log.
	Now uint32
	// Possible is the level that all members said they understand, 0 as long as one has not answered yet.
	Possible uint32
	// Own is the newest that this node understands.
	Own uint32
}

// Level is the feature level as this node knows it.
func (n *Node) Level() Level {
	return Level{Now: n.ledger.Format(), Possible: n.possible(false), Own: fsm.EntryFormat}
}

// possible is the newest format that all members of raft's configuration said they understand; 0 if one has not answered, or
// does not answer now although it must.
func (n *Node) possible(now bool) uint32 {
	level := uint32(math.MaxUint32)
	for _, s := range n.servers() {
		understood, _, heard := n.understands(s)
		away := now && string(s.ID) != n.config.ID && !n.answers.find(string(s.ID)).isCurrent()
		if !heard || away {
			return 0
		}
		level = min(level, understood)
	}
	if level == math.MaxUint32 {
		return 0 // there is no configuration yet
	}
	return min(level, fsm.EntryFormat)
}

// RaiseLevel raises the cluster to the newest level that all members understand, and returns the level that it has then.
// No version before the one that brought the level can take part from then on. Only the established leader can; errors
// are *Error, NotUpgraded if members hold it back.
func (n *Node) RaiseLevel(ctx context.Context) (uint32, error) {
	if err := n.serving(); err != nil {
		return 0, err
	}
	l := n.life.Load()
	if l == nil {
		return 0, n.refuseToLead()
	}
	now, possible := n.ledger.Format(), n.possible(false)
	switch {
	case now >= fsm.EntryFormat:
		return now, nil
	case possible <= now || possible < fsm.RaisedFrom:
		if err := n.understood(max(now+1, fsm.RaisedFrom)); err != nil {
			return 0, err
		}
		return now, nil
	}
	_, err := l.write(ctx, fsm.RaiseLevel(possible))
	return n.ledger.Format(), err
}

// write carries out a part of an entry that is no command, and returns the index of the entry.
func (l *life) write(ctx context.Context, part fsm.Part) (uint64, error) {
	p := &proposal{part: part, done: make(chan result, 1), late: ctx.Err}
	if err := l.queue.put([]*proposal{p}, false); err != nil {
		return 0, err
	}
	r := l.await(ctx, p)
	return r.way.Index, r.err
}

// keepLevel raises the level once all members have been there and understood a newer one for long enough, one and the same
// all the time. The wait keeps the way back to an older version open; a new cluster needs none, because no older version has
// held its data, so it is raised as soon as all members have answered.
func (l *life) keepLevel() {
	n := l.node
	isNew := n.ledger.Unused()
	var wanted uint32
	var since time.Time
	for l.ctx.Err() == nil {
		changed := n.changed.next()
		possible := n.possible(true)
		if possible < fsm.RaisedFrom || possible <= n.ledger.Format() {
			possible = 0
		}
		if possible != wanted {
			wanted, since = possible, time.Now()
		}
		pause := leaderRetry
		if wanted > 0 {
			pause = n.config.RaiseLevelAfter - time.Since(since)
			if isNew && time.Since(l.began) < n.config.RaiseLevelAfter {
				pause = 0
			}
			if pause <= 0 {
				l.raise(wanted)
				pause = leaderRetry
			}
		}
		l.rest(changed, pause)
	}
}

// rest waits until something has changed, at most for so long.
func (l *life) rest(changed <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

func (l *life) raise(level uint32) {
	if _, err := l.write(l.ctx, fsm.RaiseLevel(level)); err != nil && l.ctx.Err() == nil {
		l.node.log.Warn("cannot raise the feature level of the cluster, trying again", "level", level, "error", err)
		return
	}
	l.node.log.Info("raised the feature level of the cluster", "level", level)
}

// warnOfLevel says that the cluster is at a level that this version does not understand, as a member says. It stops nothing: the
// log or a snapshot does, when this node gets one of that level (docs/adr/0053).
func (n *Node) warnOfLevel(said Standing) {
	if said.ClusterLevel <= fsm.EntryFormat || n.warnedOfLevel.Swap(true) {
		return
	}
	n.log.Error("a member says that the cluster is at a feature level which this version does not understand; if so, this node will stop "+
		"at the first entry of that level: run a version that understands it", "member", said.ID, "level", said.ClusterLevel,
		"version", n.config.Version, "understands", fsm.EntryFormat)
}
