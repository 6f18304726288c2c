package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

// noticeTimeout bounds how long a leader takes to confirm its leadership and deliver one notice.
const noticeTimeout = 5 * time.Second

type autopilot struct {
	self string
	// manual, stableAfter and removeDeadAfter are Config.ManualJoin, StabilizationTime and RemoveDeadAfter.
	manual                       bool
	stableAfter, removeDeadAfter time.Duration
	timeouts                     timeoutScale
	log                          hclog.Logger
	ctx                          context.Context //nolint:containedctx // that of the leadership
	startedAt                    time.Time
	raft                         *raft.Raft
	transport                    *raftguard.Transport
	elections                    *elections
	disk                         *diskMonitor
	poller                       *poller
	reads                        *readBatcher
	health                       *prober
	servers                      *configChanger
	quorum                       *quorumRules
	civil                        *civilClock
	// worseDiskSince is since when another voter has had a better disk.
	worseDiskSince time.Time
}

// run manages the members for as long as the leadership lasts: it adds waiting nodes, promotes stable ones,
// demotes voters that lost their data, hands over to a better disk and, if configured, removes dead members
// (docs/adr/0037).
func (a *autopilot) run() {
	limiter := logLimiter{}
	for {
		a.health.probeAll()
		a.civil.correct()
		err := a.servers.withLock(func() error {
			a.reconcile(limiter)
			return nil
		})
		if err != nil || !sleepContext(a.ctx, probeInterval) {
			return
		}
	}
}

// reconcile makes at most one change of each kind. Each change is confirmed before the next one begins.
func (a *autopilot) reconcile(limiter logLimiter) {
	for _, step := range []func([]NodeHealth) (about string, err error){
		a.demoteEmptyVoter, a.addWaitingNode, a.notifyAdmitted, a.promoteStableNode, a.removeDeadMember,
		a.notifyRemoved, a.leaveWorseDisk,
	} {
		about, err := step(a.health.list())
		if a.ctx.Err() != nil {
			return
		}
		if err != nil && limiter.shouldLog(about) {
			a.log.Warn("cannot reconcile a member", "member", about, "error", err)
		}
	}
}

// demoteEmptyVoter demotes a voter that came back without its data. Such a node has forgotten its votes and takes part
// in nothing until it is demoted, so the demotion does not reduce the number of working voters.
func (a *autopilot) demoteEmptyVoter(list []NodeHealth) (string, error) {
	for _, h := range votersOf(list) {
		if !a.manual && h.Status.Instance != "" {
			a.log.Warn("a voter came back without its data and is demoted", "member", h.ID)
			return h.ID, a.servers.demoteVoter(h.ID)
		}
	}
	return "", nil
}

func (a *autopilot) addWaitingNode(list []NodeHealth) (string, error) {
	var about string
	var failed error
	for _, h := range list {
		if a.manual || h.Role != RoleWaiting || !h.Alive {
			continue
		}
		err := a.servers.addNonvoter(h)
		if err == nil {
			return "", nil
		}
		about, failed = h.ID, err // the next node may succeed
	}
	return about, failed
}

// notifyAdmitted notifies nodes without state that the configuration contains them as non-voters. This must be true for
// the whole cluster and not only for a leader that has been replaced, so sendNotice confirms the leadership after the
// configuration was read.
func (a *autopilot) notifyAdmitted(list []NodeHealth) (about string, failed error) {
	for _, h := range list {
		if h.Role != RoleNonVoter || h.Status.Instance == "" {
			continue
		}
		notice := Notice{
			Leader: a.self, Instance: h.Status.Instance, PromoteWhenStable: !a.manual,
			Index: a.raft.LastIndex(),
		}
		if err := a.sendNotice(h.Member, notice); err != nil {
			about, failed = h.ID, err
		}
	}
	return about, failed
}

func (a *autopilot) sendNotice(m Member, notice Notice) error {
	ctx, cancel := context.WithTimeout(a.ctx, noticeTimeout)
	defer cancel()
	if _, err := a.reads.waitConfirmed(ctx); err != nil {
		return err
	}
	client := a.poller.client.Load()
	if client == nil {
		return fmt.Errorf("%s cannot be notified: no client for other nodes is set", m.ID)
	}
	return (*client).Notify(ctx, m, notice)
}

// promoteStableNode promotes at most one node.
func (a *autopilot) promoteStableNode(list []NodeHealth) (string, error) {
	for _, h := range list {
		if a.manual || h.Role != RoleNonVoter || !h.Status.PromoteWhenStable || !h.Healthy {
			continue
		}
		if stable := time.Since(h.HealthySince); stable >= a.stableAfter {
			return h.ID, a.servers.promoteToVoter(h.Member)
		}
	}
	return "", nil
}

// removeDeadMember removes one member from which neither its API, gossip nor raft has heard for RemoveDeadAfter, if
// enough of the others are healthy.
func (a *autopilot) removeDeadMember(list []NodeHealth) (string, error) {
	deadAfter := a.removeDeadAfter
	if deadAfter == 0 {
		return "", nil
	}
	for _, h := range list {
		member := h.Role == RoleVoter || h.Role == RoleNonVoter
		silent := min(time.Since(h.LastHeard), time.Since(a.transport.LastAck(raft.ServerID(h.ID))),
			time.Since(a.startedAt))
		if !member || h.LastHeard.IsZero() || silent < deadAfter {
			continue
		}
		if h.Role == RoleVoter {
			if err := a.quorum.checkQuorumWithout(list, h.ID); err != nil {
				return h.ID, err
			}
		}
		a.log.Warn("removing a dead member", "member", h.ID, "silent", silent.Round(time.Second))
		return h.ID, a.servers.removeServer(h.ID)
	}
	return "", nil
}

// notifyRemoved notifies former members that still run with their old state that they were removed.
func (a *autopilot) notifyRemoved(list []NodeHealth) (about string, failed error) {
	for _, h := range list {
		if h.Role != RoleNone || !h.Answered || h.Status.Leader != "" || h.Status.LastIndex == 0 {
			continue
		}
		if err := a.sendNotice(h.Member, Notice{Leader: a.self}); err != nil {
			about, failed = h.ID, err
		}
	}
	return about, failed
}
