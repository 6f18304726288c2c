package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/cluster/raftguard"
)

type elections struct {
	self, address string
	timeouts      timeoutScale
	log           hclog.Logger
	raft          *raft.Raft
	transport     *raftguard.Transport
	directory     *peers.Directory
	roster        *peers.Roster
	leader        *leaderFinder
}

// electSoleVoter starts an election at once if this node is the only voter: it need not wait for a leader that cannot
// exist.
func (e *elections) electSoleVoter() {
	if voters := e.roster.VoterIDs(); len(voters) == 1 && voters[0] == raft.ServerID(e.self) {
		e.start()
	}
}

func (e *elections) electIfVoter() {
	if slices.Contains(e.roster.VoterIDs(), raft.ServerID(e.self)) {
		e.start()
	}
}

// start makes raft a candidate at once, like a leadership transfer does. raft has no call for this, but accepts
// a TimeoutNow message from itself. An election is always safe.
func (e *elections) start() {
	self, address := raft.ServerID(e.self), raft.ServerAddress(e.address)
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: []byte(address),
	}}
	if err := e.transport.TimeoutNow(self, address, &request, &raft.TimeoutNowResponse{}); err != nil {
		e.log.Debug("cannot start an election at once", "error", err)
	}
}

// transfer transfers the leadership to the most advanced voter or, if that fails, to any voter that is alive,
// after it has written ledger time. It takes at most two step timeouts.
func (e *elections) transfer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*e.timeouts.scale(stepTimeout))
	defer cancel()
	if l := e.leader.own.Load(); l != nil {
		l.expiry.writeLastTick(ctx) // also of an only voter, which continues from there when it is started again
	}
	if e.raft.State() != raft.Leader || len(e.roster.VoterIDs()) < 2 {
		return nil
	}
	err := awaitFuture(ctx, e.raft.LeadershipTransfer())
	for _, s := range e.roster.Servers() {
		if err == nil || ctx.Err() != nil || e.raft.State() != raft.Leader {
			return err
		}
		p, known := e.directory.Find(string(s.ID))
		if known && p.Alive && s.Suffrage == raft.Voter && p.ID != e.self {
			err = awaitFuture(ctx, e.raft.LeadershipTransferToServer(s.ID, s.Address))
		}
	}
	return err
}

func (e *elections) transferTo(ctx context.Context, m Member) error {
	if l := e.leader.own.Load(); l != nil {
		l.expiry.writeLastTick(ctx)
	}
	future := e.raft.LeadershipTransferToServer(raft.ServerID(m.ID), raft.ServerAddress(m.RaftAddr))
	return e.transferError(awaitFuture(ctx, future))
}

// transferBeforeRemoval transfers the leadership, so that the next leader can demote or remove this node.
func (e *elections) transferBeforeRemoval(ctx context.Context) error {
	if err := e.transferAway(ctx); err != nil {
		return err
	}
	again := newError(NotLeader, true, nil, "node %s has transferred the leadership in order to be demoted or "+
		"removed; ask again", e.self)
	again.Leader = e.leader.id()
	return again
}

func (e *elections) transferAway(ctx context.Context) error {
	if len(e.roster.VoterIDs()) < 2 {
		return newError(Unsafe, true, nil, "%s is the only voter; there is no other voter to transfer the leadership to",
			e.self)
	}
	e.log.Info("transferring the leadership")
	return e.transferError(e.transfer(ctx))
}

func (e *elections) transferError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return newError(Deadline, false, err, "the leadership was not transferred in time")
	}
	return newError(LeadershipLost, false, err, "the leadership was not transferred; check with `quorate cluster "+
		"members` which node leads")
}
