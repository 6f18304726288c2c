package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
)

type leaderFinder struct {
	self    string
	started time.Time
	service *service
	raft    *raft.Raft
	roster  *peers.Roster
	answers *peers.Answers
	disk    *diskMonitor
	// changed is notified when the result of find may be another.
	changed *changeNotifier
	// own is the established leadership of this node; nil while it does not lead.
	own atomic.Pointer[leadership]
}

// Leader returns the leader as this node knows it, or false if it knows none. A node that was elected does not report
// itself before it has established its leadership, so requests can be sent to the reported leader.
func (n *Node) Leader() (Member, bool) { return n.leader.find() }

// IsLeader reports whether this node leads and has established its leadership, so that Propose and ReadIndex work here.
func (n *Node) IsLeader() bool { return n.leader.leads() }

// WaitLeader waits until this node knows a leader, until ctx ends (NoLeader) or the node stops (Halted or
// ShuttingDown). Errors are *Error.
func (n *Node) WaitLeader(ctx context.Context) (Member, error) { return n.leader.wait(ctx) }

func (f *leaderFinder) find() (Member, bool) {
	address, id := f.raft.LeaderWithID()
	if id == "" || f.service.fault() != nil {
		return Member{}, false
	}
	if string(id) == f.self && f.own.Load() == nil {
		return f.namedByPeers()
	}
	for _, s := range f.roster.Servers() {
		if s.ID == id {
			return f.roster.MemberOf(s), true
		}
	}
	return f.roster.MemberOf(raft.Server{ID: id, Address: address, Suffrage: raft.Nonvoter}), true
}

func (f *leaderFinder) id() string {
	leader, _ := f.find()
	return leader.ID
}

func (f *leaderFinder) leads() bool { return f.own.Load() != nil }

func (f *leaderFinder) wait(ctx context.Context) (Member, error) {
	for {
		changed := f.changed.nextChange()
		if err := f.service.check(); err != nil {
			return Member{}, err
		}
		if leader, known := f.find(); known {
			return leader, nil
		}
		select {
		case <-changed:
		case <-f.service.ctx.Done():
		case <-ctx.Done():
			return Member{}, newError(NoLeader, true, ctx.Err(),
				"no leader is known to node %s; a majority of the voters must be up and reach each other", f.self)
		}
	}
}

// established returns the leadership of this node, or an *Error if the node does not serve or does not lead.
func (f *leaderFinder) established() (*leadership, error) {
	if err := f.service.check(); err != nil {
		return nil, err
	}
	l := f.own.Load()
	if l == nil {
		return nil, f.notLeaderError()
	}
	return l, nil
}

func (f *leaderFinder) notLeaderError() *Error {
	leader, known := f.find()
	if !known {
		return newError(NoLeader, true, nil, "no leader is established that node %s knows of; try again", f.self)
	}
	e := newError(NotLeader, true, nil, "node %s does not lead; ask %s", f.self, leader.ID)
	e.Leader = leader.ID
	return e
}

func (f *leaderFinder) leadershipLostError(cause error) error {
	e := newError(LeadershipLost, true, cause, "node %s lost the leadership before the read was confirmed",
		f.self)
	e.Leader = f.id()
	return e
}

func (f *leaderFinder) contactAge() time.Duration {
	if f.leads() {
		return 0
	}
	contact := f.raft.LastContact()
	if contact.Before(f.started) {
		contact = f.started
	}
	return time.Since(contact)
}

// namedByPeers returns the leader that the other members name while raft on this node still takes itself for the
// leader, because it waits for a write.
func (f *leaderFinder) namedByPeers() (Member, bool) {
	if !f.disk.isStalled() {
		return Member{}, false
	}
	term, named := f.raft.CurrentTerm(), ""
	servers := f.roster.Servers()
	for _, s := range servers {
		answer := f.answers.Find(string(s.ID))
		if answer.IsCurrent() && answer.Term > term && answer.Leader != "" && answer.Leader != f.self {
			term, named = answer.Term, answer.Leader
		}
	}
	for _, s := range servers {
		if string(s.ID) == named {
			return f.roster.MemberOf(s), true
		}
	}
	return Member{}, false
}

// stateName is the raft state, except that a node that stopped to act as leader does not count as one: raft itself
// notices the new leader only when its write returns.
func (f *leaderFinder) stateName() string {
	if state := f.raft.State(); state != raft.Leader || !f.disk.isStalled() {
		return state.String()
	}
	return raft.Follower.String()
}

// notAppliedReasons are the errors with which raft certainly did not accept an entry. Every other error leaves the
// outcome unknown, even one from storing the entry: part of the entry may be on disk and reappear after a restart.
var notAppliedReasons = map[error]Reason{
	raft.ErrNotLeader:                    NotLeader,
	raft.ErrLeadershipTransferInProgress: LeadershipLost,
	raft.ErrEnqueueTimeout:               Overloaded,
}

func (f *leaderFinder) applyError(err error) *Error {
	for sentinel, reason := range notAppliedReasons {
		if errors.Is(err, sentinel) {
			e := newError(reason, true, err, "the entry was not taken; try again")
			e.Leader = f.id()
			return e
		}
	}
	if errors.Is(err, raft.ErrRaftShutdown) {
		return newError(ShuttingDown, false, err, "node %s stopped meanwhile; retry with the same id", f.self)
	}
	e := newError(LeadershipLost, false, err,
		"node %s lost the leadership before the entry was confirmed; it may still take effect: retry with the same "+
			"id", f.self)
	e.Leader = f.id()
	return e
}
