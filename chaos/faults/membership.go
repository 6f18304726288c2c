package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// settleTimeout is how long one look waits for the voters to have what the leader had. Whoever looks does so again.
const settleTimeout = 5 * time.Second

// departure is what a node was asked to give up. It stays noted until it is certain that no such change can happen any more: one
// that nobody answered for may be in the log of a leader that was cut off.
type departure struct {
	removed, demoted bool
	// emptied is true from when the node got an empty folder until it is a member again.
	emptied bool
}

func (t *Target) updateDeparture(node int, change func(*departure)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.departures[node]
	change(&l)
	t.departures[node] = l
}

func (t *Target) departureOf(node int) departure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.departures[node]
}

// membership is the configuration of a leader at one moment.
type membership struct {
	leader int
	term   uint64
	// lastIndex is the end of the leader's log: the configuration is that or an earlier entry.
	lastIndex uint64
	roles     map[string]quoratev1.Seat
}

// readMembership asks the leader who its members are. It may be wrong about that: its newest configuration may be in no other log.
func (t *Target) readMembership(ctx context.Context) (membership, error) {
	s := membership{leader: t.Leader(ctx), roles: map[string]quoratev1.Seat{}}
	if s.leader < 0 {
		return s, errors.New("nobody leads")
	}
	before, err := t.nodeStatus(ctx, s.leader)
	if err != nil {
		return s, err
	}
	answer, err := t.clients[s.leader].Cluster.ListMembers(ctx, &quoratev1.ListMembersRequest{})
	if err != nil {
		return s, err
	}
	after, err := t.nodeStatus(ctx, s.leader)
	if err != nil {
		return s, err
	}
	id := t.Nodes[s.leader].ID
	if answer.GetServedBy() != id || answer.GetLeaderId() != id || before.GetTerm() != after.GetTerm() {
		return s, fmt.Errorf("%s leads no more", id)
	}
	for _, m := range answer.GetMembers() {
		s.roles[m.GetId()] = m.GetSeat()
	}
	own := after.GetMembers()
	if len(own) != 1 {
		return s, fmt.Errorf("%s shows %d members where it was asked about itself", id, len(own))
	}
	s.term, s.lastIndex = after.GetTerm(), own[0].GetLastIndex()
	return s, nil
}

// settledRoles is the membership beyond doubt: all voters of it are in the leader's term and know as committed whatever the leader had
// in its log when it was asked. So no other configuration can be in the log of any of them, or come back from there.
func (t *Target) settledRoles(ctx context.Context) (map[string]quoratev1.Seat, error) {
	s, err := t.readMembership(ctx)
	if err != nil {
		return nil, err
	}
	return s.roles, retryUntil(ctx, settleTimeout, func() error { return s.checkShared(t, t.nodeStatuses(ctx)) })
}

// checkShared is nil if all voters have it.
func (s membership) checkShared(t *Target, all []*quoratev1.GetStatusResponse) error {
	for i, one := range all {
		switch id := t.Nodes[i].ID; {
		case s.roles[id] != quoratev1.Seat_SEAT_VOTER:
		case one == nil:
			return fmt.Errorf("%s does not answer", id)
		case one.GetTerm() != s.term:
			return fmt.Errorf("%s is in term %d, not in %d", id, one.GetTerm(), s.term)
		case one.GetCommitIndex() < s.lastIndex:
			return fmt.Errorf("%s does not know that entry %d is committed", id, s.lastIndex)
		}
	}
	return nil
}

// restoreVote takes one step to make a node a voter again that was asked to be none, and is nil if it is one. What it does not do is
// what the cluster should do by itself: take a new node in, and give it a vote.
func (t *Target) restoreVote(ctx context.Context, node int) error {
	seats, err := t.settledRoles(ctx)
	if err != nil {
		return err
	}
	id, asked := t.Nodes[node].ID, t.departureOf(node)
	switch seat := seats[id]; {
	case seat == quoratev1.Seat_SEAT_VOTER:
		return nil
	case seat == quoratev1.Seat_SEAT_NON_VOTER:
		t.updateDeparture(node, func(l *departure) { l.emptied = false })
		if asked.demoted {
			return t.promoteNode(ctx, node)
		}
	case seat != quoratev1.Seat_SEAT_WAITING && asked.removed && !asked.emptied:
		return t.rejoinEmpty(node)
	}
	return fmt.Errorf("%s has no vote yet (%v)", id, seats[id])
}

func (t *Target) promoteNode(ctx context.Context, node int) error {
	_, err := t.clients[node].Cluster.PromoteMember(ctx, &quoratev1.PromoteMemberRequest{Id: t.Nodes[node].ID})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s was just given a vote", t.Nodes[node].ID)
}

// rejoinEmpty gives a node that was removed an empty folder, as its message asks for. The removal is settled: the node's vote
// and what it has on its disk count for nothing any more, whatever else is wrong at the moment.
func (t *Target) rejoinEmpty(node int) error {
	n := t.Nodes[node]
	if err := errors.Join(n.Kill(), n.Wipe(), n.Start()); err != nil {
		return err
	}
	t.updateDeparture(node, func(l *departure) { l.emptied = true })
	t.Note(node, "started with an empty folder, as a new member")
	return fmt.Errorf("%s was just started", n.ID)
}

// restoreVotes takes a step with every node that was asked to give up its seat.
func (t *Target) restoreVotes(ctx context.Context) error {
	var failed []error
	for node := range t.Nodes {
		if l := t.departureOf(node); l.removed || l.demoted {
			failed = append(failed, t.restoreVote(ctx, node))
		}
	}
	return errors.Join(failed...)
}
