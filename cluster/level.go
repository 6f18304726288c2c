package cluster

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorate/quorate/fsm"
)

// FeatureLevel is the feature level of the cluster: the newest entry format that its log may contain.
type FeatureLevel struct {
	// Current is the level that every node that follows the log must understand.
	Current uint32
	// Possible is the level that all members understand; 0 until all have answered.
	Possible uint32
	// Supported is the newest level that this node understands.
	Supported uint32
}

// Level returns the feature level as this node knows it.
func (n *Node) Level() FeatureLevel {
	return FeatureLevel{Current: n.ledger.Format(), Possible: n.commonFormat(false), Supported: n.config.Formats.Newest()}
}

// commonFormat returns the newest format that all members of raft's configuration understand according to their last
// answers. It returns 0 if a member has never answered or, with now set, does not answer at present.
func (n *Node) commonFormat(now bool) uint32 {
	level := uint32(math.MaxUint32)
	for _, s := range n.servers() {
		understood, _, heard := n.knownFormat(s)
		away := now && string(s.ID) != n.config.ID && !n.answers.findAnswer(string(s.ID)).isCurrent()
		if !heard || away {
			return 0
		}
		level = min(level, understood)
	}
	if level == math.MaxUint32 {
		return 0 // the configuration is still empty
	}
	return min(level, n.config.Formats.Newest())
}

// RaiseLevel raises the cluster to the newest level that all members understand and returns the resulting level. From
// then on no older version than the one that introduced the level can take part. It works only on the established
// leader. Errors are *Error, with reason NotUpgraded if a member does not understand the level.
func (n *Node) RaiseLevel(ctx context.Context) (uint32, error) {
	l, err := n.establishedLeadership()
	if err != nil {
		return 0, err
	}
	now, possible := n.ledger.Format(), n.commonFormat(false)
	switch {
	case now >= n.config.Formats.Newest():
		return now, nil
	case possible <= now:
		if err := n.checkAllUnderstand(now + 1); err != nil {
			return 0, err
		}
		return now, nil
	}
	_, err = l.proposePart(ctx, fsm.RaiseLevel(possible))
	return n.ledger.Format(), err
}

// proposePart proposes a part of an entry that is not a command and returns the index of the entry.
func (l *leadership) proposePart(ctx context.Context, part fsm.Part) (uint64, error) {
	p := &proposal{part: part, done: make(chan proposalResult, 1), callerErr: ctx.Err}
	if err := l.queue.enqueue([]*proposal{p}, false); err != nil {
		return 0, err
	}
	r := l.awaitResult(ctx, p)
	return r.report.Index, r.err
}

// autoRaiseLevel raises the level once all members have answered and understood the same newer level for
// RaiseLevelAfter. Until then operators can go back to the older version. A new cluster is raised as soon as all
// members have answered, because no older version has held its data.
func (l *leadership) autoRaiseLevel() {
	n := l.node
	isNew := n.ledger.Unused()
	var wanted uint32
	var since time.Time
	for l.ctx.Err() == nil {
		changed := n.changes.nextChange()
		possible := n.commonFormat(true)
		if possible <= n.ledger.Format() {
			possible = 0
		}
		if possible != wanted {
			wanted, since = possible, time.Now()
		}
		pause := leaderRetry
		if wanted > 0 {
			pause = n.config.RaiseLevelAfter - time.Since(since)
			if isNew && time.Since(l.startedAt) < n.config.RaiseLevelAfter {
				pause = 0
			}
			if pause <= 0 {
				l.raiseLevel(wanted)
				pause = leaderRetry
			}
		}
		waitForChange(l.ctx, changed, pause)
	}
}

func (l *leadership) raiseLevel(level uint32) {
	if _, err := l.proposePart(l.ctx, fsm.RaiseLevel(level)); err != nil && l.ctx.Err() == nil {
		l.node.log.Warn("cannot raise the feature level of the cluster, trying again", "level", level, "error", err)
		return
	}
	l.node.log.Info("raised the feature level of the cluster", "level", level)
}

// warnAboutLevel logs once that, according to a member, the cluster is at a level that this version does not
// understand. It does not stop the node: the log or a snapshot does, when this node receives one of that level
// (docs/adr/0053).
func (n *Node) warnAboutLevel(status NodeStatus) {
	if status.ClusterLevel <= n.config.Formats.Newest() || n.warnedAboutLevel.Swap(true) {
		return
	}
	n.log.Error("a member says that the cluster is at a feature level which this version does not understand; if so, "+
		"this node will stop at the first entry of that level: run a version that understands it", "member", status.ID,
		"level", status.ClusterLevel, "version", n.config.Version, "understands", n.config.Formats.Newest())
}

// CheckLevel returns an *Error with reason NotUpgraded, which names the members that are behind, if something that
// needs a feature level must not be written yet.
func (n *Node) CheckLevel(level uint32) error {
	if err := n.checkFormat(level); err != nil {
		return err
	}
	return nil
}

// checkFormat returns an error if entries of a format must not be written yet. Once the log contains one, or the level
// was raised to it, the format is always accepted: a member that does not understand it has stopped. Until then it is
// refused, also if all members understand it (docs/adr/0046).
func (n *Node) checkFormat(format uint32) *Error {
	if n.ledger.Format() >= format {
		return nil
	}
	if err := n.checkAllUnderstand(format); err != nil {
		return err
	}
	return newError(NotUpgraded, true, nil, "this needs feature level %d, and the cluster is at %d; all "+
		"members have it, "+
		"so the leader raises the cluster to it after a while, or now with `quorate cluster level "+
		"--raise`", format, n.ledger.Format())
}

// checkAllUnderstand returns an error unless every member of raft's configuration understands a format according to its
// last answer. A member that has not answered since this node started counts as one that does not, because nothing else
// is safe.
func (n *Node) checkAllUnderstand(format uint32) *Error {
	behind := n.membersBehind(format)
	if len(behind) == 0 {
		return nil
	}
	return newError(NotUpgraded, true, nil, "this needs feature level %d on all members, and these are "+
		"not known to have "+
		"it: %s; upgrade or start them, or remove them from the cluster", format, strings.Join(behind, ", "))
}

// membersBehind describes the members that are not known to understand a format.
func (n *Node) membersBehind(format uint32) []string {
	var behind []string
	for _, s := range n.servers() {
		switch level, version, heard := n.knownFormat(s); {
		case !heard:
			behind = append(behind, fmt.Sprintf("%s (has not answered yet)", s.ID))
		case level < format:
			behind = append(behind, fmt.Sprintf("%s (version %s, feature level %d)", s.ID, version, level))
		}
	}
	return behind
}
