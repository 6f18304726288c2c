package cluster

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/fsm"
)

// levels is what this node knows about the feature level of the cluster and of its members.
type levels struct {
	self, version string
	log           hclog.Logger
	formats       *fsm.Formats
	ledger        *fsm.FSM
	roster        *peers.Roster
	answers       *peers.Answers
	warned        atomic.Bool // about a level that this version does not understand
}

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
func (n *Node) Level() FeatureLevel { return n.levels.current() }

func (l *levels) current() FeatureLevel {
	return FeatureLevel{Current: l.ledger.Format(), Possible: l.commonFormat(false), Supported: l.formats.Newest()}
}

// commonFormat returns the newest format that all members of raft's configuration understand according to their last
// answers. It returns 0 if a member has never answered or, with now set, does not answer at present.
func (l *levels) commonFormat(now bool) uint32 {
	level := uint32(math.MaxUint32)
	for _, s := range l.roster.Servers() {
		understood, _, heard := l.roster.KnownFormat(s)
		away := now && string(s.ID) != l.self && !l.answers.Find(string(s.ID)).IsCurrent()
		if !heard || away {
			return 0
		}
		level = min(level, understood)
	}
	if level == math.MaxUint32 {
		return 0 // the configuration is still empty
	}
	return min(level, l.formats.Newest())
}

// RaiseLevel raises the cluster to the newest level that all members understand and returns the resulting level. From
// then on no older version than the one that introduced the level can take part. It works only on the established
// leader. Errors are *Error, with reason NotUpgraded if a member does not understand the level.
func (n *Node) RaiseLevel(ctx context.Context) (uint32, error) {
	l, err := n.leader.established()
	if err != nil {
		return 0, err
	}
	now, possible := n.ledger.Format(), n.levels.commonFormat(false)
	switch {
	case now >= n.config.Formats.Newest():
		return now, nil
	case possible <= now:
		if err := n.levels.checkAllUnderstand(now + 1); err != nil {
			return 0, err
		}
		return now, nil
	}
	_, err = l.commit.proposePart(ctx, fsm.RaiseLevel(possible))
	return n.ledger.Format(), err
}

type levelRaiser struct {
	log       hclog.Logger
	ctx       context.Context //nolint:containedctx // that of the leadership
	startedAt time.Time
	after     time.Duration // Config.RaiseLevelAfter
	ledger    *fsm.FSM
	levels    *levels
	changes   *changeNotifier
	commit    *groupCommit
}

// run raises the level once all members have answered and understood the same newer level for
// Config.RaiseLevelAfter. Until then operators can go back to the older version. A new cluster is raised as soon as all
// members have answered, because no older version has held its data.
func (r *levelRaiser) run() {
	isNew := r.ledger.Unused()
	var wanted uint32
	var since time.Time
	for r.ctx.Err() == nil {
		changed := r.changes.nextChange()
		possible := r.levels.commonFormat(true)
		if possible <= r.ledger.Format() {
			possible = 0
		}
		if possible != wanted {
			wanted, since = possible, time.Now()
		}
		pause := leaderRetry
		if wanted > 0 {
			pause = r.after - time.Since(since)
			if isNew && time.Since(r.startedAt) < r.after {
				pause = 0
			}
			if pause <= 0 {
				r.raise(wanted)
				pause = leaderRetry
			}
		}
		waitForChange(r.ctx, changed, pause)
	}
}

func (r *levelRaiser) raise(level uint32) {
	if _, err := r.commit.proposePart(r.ctx, fsm.RaiseLevel(level)); err != nil && r.ctx.Err() == nil {
		r.log.Warn("cannot raise the feature level of the cluster, trying again", "level", level, "error", err)
		return
	}
	r.log.Info("raised the feature level of the cluster", "level", level)
}

// warnAbout logs once that, according to a member, the cluster is at a level that this version does not
// understand. It does not stop the node: the log or a snapshot does, when this node receives one of that level
// (docs/adr/0053).
func (l *levels) warnAbout(status NodeStatus) {
	if status.ClusterLevel <= l.formats.Newest() || l.warned.Swap(true) {
		return
	}
	l.log.Error("a member says that the cluster is at a feature level which this version does not understand; if so, "+
		"this node will stop at the first entry of that level: run a version that understands it", "member", status.ID,
		"level", status.ClusterLevel, "version", l.version, "understands", l.formats.Newest())
}

// CheckLevel returns an *Error with reason NotUpgraded, which names the members that are behind, if something that
// needs a feature level must not be written yet.
func (n *Node) CheckLevel(level uint32) error {
	if err := n.levels.check(level); err != nil {
		return err
	}
	return nil
}

// check returns an error if entries of a format must not be written yet. Once the log contains one, or the level
// was raised to it, the format is always accepted: a member that does not understand it has stopped. Until then it is
// refused, also if all members understand it (docs/adr/0046).
func (l *levels) check(format uint32) *Error {
	if l.ledger.Format() >= format {
		return nil
	}
	if err := l.checkAllUnderstand(format); err != nil {
		return err
	}
	return newError(NotUpgraded, true, nil, "this needs feature level %d, and the cluster is at %d; all members have it, "+
		"so the leader raises the cluster to it after a while, or now with `quorate level raise`", format, l.ledger.Format())
}

// checkAllUnderstand returns an error unless every member of raft's configuration understands a format according to its
// last answer. A member that has not answered since this node started counts as one that does not, because nothing else
// is safe.
func (l *levels) checkAllUnderstand(format uint32) *Error {
	behind := l.membersBehind(format)
	if len(behind) == 0 {
		return nil
	}
	return newError(NotUpgraded, true, nil, "this needs feature level %d on all members, and these are "+
		"not known to have "+
		"it: %s; upgrade or start them, or remove them from the cluster", format, strings.Join(behind, ", "))
}

func (l *levels) membersBehind(format uint32) []string {
	var behind []string
	for _, s := range l.roster.Servers() {
		switch level, version, heard := l.roster.KnownFormat(s); {
		case !heard:
			behind = append(behind, fmt.Sprintf("%s (has not answered yet)", s.ID))
		case level < format:
			behind = append(behind, fmt.Sprintf("%s (version %s, feature level %d)", s.ID, version, level))
		}
	}
	return behind
}
