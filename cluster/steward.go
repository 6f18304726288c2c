package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// noticePatience bounds how long a leader takes to confirm its leadership and to tell one node about its place.
const noticePatience = 5 * time.Second

// steward looks after the members for as long as the leadership lasts: it takes new nodes in, gives a vote to those that
// are stable, takes it from those that lost their data, and removes the dead if it was told to (docs/adr/0037).
func (l *life) steward() {
	said := complaints{}
	for {
		l.examine()
		err := l.seats.alone(l, func() error {
			l.tend(said)
			return nil
		})
		if err != nil || !after(l.ctx, checkPause) {
			return
		}
	}
}

// tend makes at most one change of each kind, one after the other; each is confirmed before the next begins.
func (l *life) tend(said complaints) {
	for _, step := range []func([]Health) (about string, err error){
		l.unseatBlank, l.takeNewcomer, l.admitNewcomer, l.promoteStable, l.removeDead, l.dismissStranger,
	} {
		about, err := step(l.health())
		if l.ctx.Err() != nil {
			return
		}
		if err != nil && said.due(about) {
			l.node.log.Warn("cannot look after a member", "member", about, "error", err)
		}
	}
}

func (l *life) automatic() bool { return !l.node.config.ManualJoin }

// unseatBlank takes the vote from a voter that came back without its data: it has forgotten what it promised, and takes part
// in nothing until this is done. It counts for nobody in the meantime, so the cluster loses nothing by it.
func (l *life) unseatBlank(list []Health) (string, error) {
	for _, h := range votersOf(list) {
		if l.automatic() && h.Standing.Instance != "" {
			l.node.log.Warn("a voter came back without its data, it begins again as a non-voter", "member", h.ID)
			return h.ID, l.demote(h.ID)
		}
	}
	return "", nil
}

// takeNewcomer gives a seat without a vote to one node that waits for it.
func (l *life) takeNewcomer(list []Health) (string, error) {
	var about string
	var failed error
	for _, h := range list {
		if !l.automatic() || h.Seat != SeatWaiting || !h.Alive {
			continue
		}
		err := l.add(h)
		if err == nil {
			return "", nil
		}
		about, failed = h.ID, err // the next one may fit better
	}
	return about, failed
}

func (l *life) add(h Health) error {
	n := l.node
	if written := n.ledger.Format(); h.Standing.FeatureLevel < written {
		return failure(Unsafe, true, nil, "%s (version %s) understands feature level %d, and the log has entries of level %d; "+
			"upgrade it first", h.ID, h.Standing.Version, h.Standing.FeatureLevel, written)
	}
	address := cmp.Or(h.Standing.RaftAddr, h.RaftAddr) // versions below feature level 5 say it through gossip only
	n.log.Info("taking in a new node", "member", h.ID, "raft", address)
	timeout := n.config.scaled(stepTimeout)
	return l.fromConfiguration(n.raft.AddNonvoter(raft.ServerID(h.ID), raft.ServerAddress(address), 0, timeout).Error())
}

// admitNewcomer tells a node without state that it has a seat without a vote. What it is told must be true of the whole
// cluster and not only of a leader that has been replaced, so the leadership is confirmed after looking.
func (l *life) admitNewcomer(list []Health) (about string, failed error) {
	for _, h := range list {
		if h.Seat != SeatNonVoter || h.Standing.Instance == "" {
			continue
		}
		notice := Notice{Leader: l.node.config.ID, Instance: h.Standing.Instance, Candidate: l.automatic()}
		if err := l.tell(h.Member, notice); err != nil {
			about, failed = h.ID, err
		}
	}
	return about, failed
}

// tell confirms the leadership and then gives a notice.
func (l *life) tell(m Member, notice Notice) error {
	ctx, cancel := context.WithTimeout(l.ctx, noticePatience)
	defer cancel()
	if _, err := l.reads.join(ctx); err != nil {
		return err
	}
	others := l.node.others.Load()
	if others == nil {
		return fmt.Errorf("%s cannot be told: no way to other nodes is set", m.ID)
	}
	return (*others).Notify(ctx, m, notice)
}

// promoteStable gives a vote to one node that wants it and has been healthy for long enough.
func (l *life) promoteStable(list []Health) (string, error) {
	for _, h := range list {
		if !l.automatic() || h.Seat != SeatNonVoter || !h.Standing.Candidate || !h.Healthy {
			continue
		}
		if stable := time.Since(h.Since); stable >= l.node.config.StabilizationTime {
			return h.ID, l.promote(h.Member)
		}
	}
	return "", nil
}

func (l *life) promote(m Member) error {
	l.node.log.Info("a node becomes a voter", "member", m.ID)
	timeout := l.node.config.scaled(stepTimeout)
	return l.fromConfiguration(l.node.raft.AddVoter(raft.ServerID(m.ID), raft.ServerAddress(m.RaftAddr), 0, timeout).Error())
}

func (l *life) demote(id string) error {
	return l.fromConfiguration(l.node.raft.DemoteVoter(raft.ServerID(id), 0, l.node.config.scaled(stepTimeout)).Error())
}

func (l *life) remove(id string) error {
	return l.fromConfiguration(l.node.raft.RemoveServer(raft.ServerID(id), 0, l.node.config.scaled(stepTimeout)).Error())
}

// removeDead removes one member that gave no sign of life for long, neither by its API nor by gossip nor by raft, if the
// others are enough and well.
func (l *life) removeDead(list []Health) (string, error) {
	patience := l.node.config.RemoveDeadAfter
	if patience == 0 {
		return "", nil
	}
	for _, h := range list {
		member := h.Seat == SeatVoter || h.Seat == SeatNonVoter
		silent := min(time.Since(h.Heard), time.Since(l.node.guard.Heard(raft.ServerID(h.ID))), time.Since(l.began))
		if !member || h.Heard.IsZero() || silent < patience {
			continue
		}
		if h.Seat == SeatVoter {
			if err := l.spares(list, h.ID); err != nil {
				return h.ID, err
			}
		}
		l.node.log.Warn("removing a member that was silent for long", "member", h.ID, "silent", silent.Round(time.Second))
		return h.ID, l.remove(h.ID)
	}
	return "", nil
}

// dismissStranger tells nodes that are no members, and have state from when they were, that they are none any more.
func (l *life) dismissStranger(list []Health) (about string, failed error) {
	for _, h := range list {
		if h.Seat != SeatNone || !h.Answers || h.Standing.Leader != "" || h.Standing.LastIndex == 0 {
			continue
		}
		if err := l.tell(h.Member, Notice{Leader: l.node.config.ID}); err != nil {
			about, failed = h.ID, err
		}
	}
	return about, failed
}
