package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// noticeTimeout bounds how long a leader takes to confirm its leadership and deliver one notice.
const noticeTimeout = 5 * time.Second

// runAutopilot manages the members for as long as the leadership lasts: it adds waiting nodes, promotes stable ones,
// demotes voters that lost their data, hands over to a better disk and, if configured, removes dead members
// (docs/adr/0037).
func (l *leadership) runAutopilot() {
	limiter, reports := logLimiter{}, &clockReports{}
	for {
		l.probeAll()
		l.correctCivilTime(reports)
		err := l.configLock.withLock(l, func() error {
			l.reconcile(limiter)
			return nil
		})
		if err != nil || !sleepContext(l.ctx, probeInterval) {
			return
		}
	}
}

// reconcile makes at most one change of each kind. Each change is confirmed before the next one begins.
func (l *leadership) reconcile(limiter logLimiter) {
	for _, step := range []func([]NodeHealth) (about string, err error){
		l.demoteEmptyVoter, l.addWaitingNode, l.notifyAdmitted, l.promoteStableNode, l.removeDeadMember,
		l.notifyRemoved, l.leaveWorseDisk,
	} {
		about, err := step(l.listHealth())
		if l.ctx.Err() != nil {
			return
		}
		if err != nil && limiter.shouldLog(about) {
			l.node.log.Warn("cannot reconcile a member", "member", about, "error", err)
		}
	}
}

func (l *leadership) isAutomatic() bool { return !l.node.config.ManualJoin }

// demoteEmptyVoter demotes a voter that came back without its data. Such a node has forgotten its votes and takes part
// in nothing until it is demoted, so the demotion does not reduce the number of working voters.
func (l *leadership) demoteEmptyVoter(list []NodeHealth) (string, error) {
	for _, h := range votersOf(list) {
		if l.isAutomatic() && h.Status.Instance != "" {
			l.node.log.Warn("a voter came back without its data and is demoted", "member", h.ID)
			return h.ID, l.demoteVoter(h.ID)
		}
	}
	return "", nil
}

// addWaitingNode adds one node that waits to join as a non-voter.
func (l *leadership) addWaitingNode(list []NodeHealth) (string, error) {
	var about string
	var failed error
	for _, h := range list {
		if !l.isAutomatic() || h.Role != RoleWaiting || !h.Alive {
			continue
		}
		err := l.addNonvoter(h)
		if err == nil {
			return "", nil
		}
		about, failed = h.ID, err // the next node may succeed
	}
	return about, failed
}

func (l *leadership) addNonvoter(h NodeHealth) error {
	n := l.node
	if written := n.ledger.Format(); h.Status.FeatureLevel < written {
		return newError(Unsafe, true, nil, "%s (version %s) understands feature level %d, and the log has "+
			"entries of level "+
			"%d; upgrade it first", h.ID, h.Status.Version, h.Status.FeatureLevel, written)
	}
	address := cmp.Or(h.Status.RaftAddr, h.RaftAddr) // versions below feature level 5 report it only by gossip
	n.log.Info("adding a new node", "member", h.ID, "raft", address)
	timeout := n.config.scaleTimeout(stepTimeout)
	return l.configurationError(
		n.raft.AddNonvoter(raft.ServerID(h.ID), raft.ServerAddress(address), 0, timeout).Error())
}

// notifyAdmitted notifies nodes without state that the configuration contains them as non-voters. This must be true for
// the whole cluster and not only for a leader that has been replaced, so sendNotice confirms the leadership after the
// configuration was read.
func (l *leadership) notifyAdmitted(list []NodeHealth) (about string, failed error) {
	for _, h := range list {
		if h.Role != RoleNonVoter || h.Status.Instance == "" {
			continue
		}
		notice := Notice{
			Leader: l.node.config.ID, Instance: h.Status.Instance, PromoteWhenStable: l.isAutomatic(),
			Index: l.node.raft.LastIndex(),
		}
		if err := l.sendNotice(h.Member, notice); err != nil {
			about, failed = h.ID, err
		}
	}
	return about, failed
}

// sendNotice confirms the leadership and then delivers a notice.
func (l *leadership) sendNotice(m Member, notice Notice) error {
	ctx, cancel := context.WithTimeout(l.ctx, noticeTimeout)
	defer cancel()
	if _, err := l.reads.waitConfirmed(ctx); err != nil {
		return err
	}
	client := l.node.peerClient.Load()
	if client == nil {
		return fmt.Errorf("%s cannot be notified: no client for other nodes is set", m.ID)
	}
	return (*client).Notify(ctx, m, notice)
}

// promoteStableNode promotes one node that asked for it and has been healthy for long enough.
func (l *leadership) promoteStableNode(list []NodeHealth) (string, error) {
	for _, h := range list {
		if !l.isAutomatic() || h.Role != RoleNonVoter || !h.Status.PromoteWhenStable || !h.Healthy {
			continue
		}
		if stable := time.Since(h.HealthySince); stable >= l.node.config.StabilizationTime {
			return h.ID, l.promoteToVoter(h.Member)
		}
	}
	return "", nil
}

func (l *leadership) promoteToVoter(m Member) error {
	l.node.log.Info("promoting a node to voter", "member", m.ID)
	timeout := l.node.config.scaleTimeout(stepTimeout)
	future := l.node.raft.AddVoter(raft.ServerID(m.ID), raft.ServerAddress(m.RaftAddr), 0, timeout)
	return l.configurationError(future.Error())
}

func (l *leadership) demoteVoter(id string) error {
	timeout := l.node.config.scaleTimeout(stepTimeout)
	return l.configurationError(l.node.raft.DemoteVoter(raft.ServerID(id), 0, timeout).Error())
}

func (l *leadership) removeServer(id string) error {
	timeout := l.node.config.scaleTimeout(stepTimeout)
	return l.configurationError(l.node.raft.RemoveServer(raft.ServerID(id), 0, timeout).Error())
}

// removeDeadMember removes one member from which neither its API, gossip nor raft has heard for RemoveDeadAfter, if
// enough of the others are healthy.
func (l *leadership) removeDeadMember(list []NodeHealth) (string, error) {
	deadAfter := l.node.config.RemoveDeadAfter
	if deadAfter == 0 {
		return "", nil
	}
	for _, h := range list {
		member := h.Role == RoleVoter || h.Role == RoleNonVoter
		silent := min(time.Since(h.LastHeard), time.Since(l.node.transport.LastAck(raft.ServerID(h.ID))),
			time.Since(l.startedAt))
		if !member || h.LastHeard.IsZero() || silent < deadAfter {
			continue
		}
		if h.Role == RoleVoter {
			if err := l.checkQuorumWithout(list, h.ID); err != nil {
				return h.ID, err
			}
		}
		l.node.log.Warn("removing a dead member", "member", h.ID, "silent", silent.Round(time.Second))
		return h.ID, l.removeServer(h.ID)
	}
	return "", nil
}

// notifyRemoved notifies former members that still run with their old state that they were removed.
func (l *leadership) notifyRemoved(list []NodeHealth) (about string, failed error) {
	for _, h := range list {
		if h.Role != RoleNone || !h.Answered || h.Status.Leader != "" || h.Status.LastIndex == 0 {
			continue
		}
		if err := l.sendNotice(h.Member, Notice{Leader: l.node.config.ID}); err != nil {
			about, failed = h.ID, err
		}
	}
	return about, failed
}
