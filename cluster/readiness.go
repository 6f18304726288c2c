package cluster

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

type readiness struct {
	self      string
	timeouts  timeoutScale
	service   *service
	raft      *raft.Raft
	disk      *diskMonitor
	leader    *leaderFinder
	join      *joinState
	joiner    *joiner
	bootstrap *bootstrapper
	reads     *reader
	changes   *changeNotifier
	// caughtUp is true once this node has caught up with the present leader.
	caughtUp atomic.Bool
}

// Ready returns nil while the node serves, has heard from its leader recently, has caught up since the leader last
// changed, and can ask the leader to confirm reads. Otherwise it returns an *Error that says what is missing.
func (n *Node) Ready() error { return n.readiness.check() }

func (r *readiness) check() error {
	if err := r.service.check(); err != nil {
		return err
	}
	if r.disk.isStalled() {
		return newError(NoLeader, true, nil, "node %s cannot follow or lead: a write to its log has not returned for %v",
			r.self, r.disk.latency.Pending().Round(time.Second))
	}
	leader, known := r.leader.find()
	if !known && r.joiner.removed.Load() {
		return r.joiner.removedError()
	}
	if !known && r.join.lost != "" && r.join.waitingInstance() != "" {
		return newError(NoLeader, true, nil, "%s", r.join.waitMessage(r.self))
	}
	if waits := r.bootstrap.wait.Load(); !known && waits != nil && *waits != "" {
		return newError(NoLeader, true, nil, "node %s belongs to no cluster yet: %s", r.self, *waits)
	}
	if !known && r.join.waitingInstance() != "" {
		return newError(NoLeader, true, nil, "%s", r.join.waitMessage(r.self))
	}
	if !known {
		return newError(NoLeader, true, nil, "node %s knows no leader; a majority of the voters must be up and reach "+
			"each other",
			r.self)
	}
	if silent := r.leader.contactAge(); silent > r.timeouts.scale(stepTimeout) {
		return newError(NoLeader, true, nil, "node %s has not heard from leader %s for %v", r.self, leader.ID,
			silent.Round(time.Millisecond))
	}
	if r.raft.State() != raft.Leader && !r.caughtUp.Load() {
		return newError(NoLeader, true, nil, "node %s is catching up with leader %s", r.self, leader.ID)
	}
	return r.reads.checkLeaderReachable(leader)
}

// watch catches up once after every change of the leader, in the same way as a linearizable read.
func (r *readiness) watch() {
	following := ""
	for r.service.ctx.Err() == nil {
		changed := r.changes.nextChange()
		leader := r.leader.id()
		if leader != following {
			r.caughtUp.Store(false)
			following = leader
		}
		if leader != "" && !r.caughtUp.Load() {
			r.caughtUp.Store(r.catchUp())
		}
		if leader != "" && !r.caughtUp.Load() {
			sleepContext(r.service.ctx, readRetry)
			continue
		}
		select {
		case <-changed:
		case <-r.service.ctx.Done():
		}
	}
}

func (r *readiness) catchUp() bool {
	index, err := r.reads.confirmedIndex(r.service.ctx)
	return err == nil && r.reads.awaitApplied(r.service.ctx, index) == nil
}
