package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// settleTimeout bounds how long one attempt waits for all voters to have what the leader had. The caller tries again.
const settleTimeout = 5 * time.Second

// departure records what a node was asked to give up. It is kept until no such change can take effect any more: an
// unanswered change may still be in the log of a leader that was cut off.
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

// membership is the configuration that a leader had at one moment.
type membership struct {
	leader int
	term   uint64
	// lastIndex is the end of the leader's log: the configuration is that entry or an earlier one.
	lastIndex uint64
	roles     map[string]adminv1.Seat
}

// readMembership asks the leader for its members. The answer may be preliminary: the newest configuration may not be
// in any other log.
func (t *Target) readMembership(ctx context.Context) (membership, error) {
	s := membership{leader: t.Leader(ctx), roles: map[string]adminv1.Seat{}}
	if s.leader < 0 {
		return s, errors.New("there is no leader")
	}
	before, err := t.nodeStatus(ctx, s.leader)
	if err != nil {
		return s, err
	}
	answer, err := t.clients[s.leader].Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
	if err != nil {
		return s, err
	}
	after, err := t.nodeStatus(ctx, s.leader)
	if err != nil {
		return s, err
	}
	id := t.Nodes[s.leader].ID
	if answer.GetServedBy() != id || answer.GetLeaderId() != id || before.GetTerm() != after.GetTerm() {
		return s, fmt.Errorf("%s does not lead any more", id)
	}
	for _, m := range answer.GetMembers() {
		s.roles[m.GetId()] = m.GetSeat()
	}
	s.term, s.lastIndex = after.GetTerm(), after.GetMember().GetLastIndex()
	return s, nil
}

// settledRoles returns the roles of all members once they are certain: all voters are in the leader's term and know
// that all entries of the leader's log are committed. Then no voter has another configuration in its log that could
// take effect later.
func (t *Target) settledRoles(ctx context.Context) (map[string]adminv1.Seat, error) {
	s, err := t.readMembership(ctx)
	if err != nil {
		return nil, err
	}
	return s.roles, retryUntil(ctx, settleTimeout, func() error { return s.checkShared(t, t.nodeStatuses(ctx)) })
}

// checkShared returns nil if all voters have what the leader had.
func (s membership) checkShared(t *Target, all []*adminv1.GetStatusResponse) error {
	for i, one := range all {
		switch id := t.Nodes[i].ID; {
		case s.roles[id] != adminv1.Seat_SEAT_VOTER:
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

// restoreVote takes one step towards making a node a voter again, and returns nil if it is one. It leaves to the
// cluster what the cluster should do by itself: to admit a new node and to give it a vote.
func (t *Target) restoreVote(ctx context.Context, node int) error {
	seats, err := t.settledRoles(ctx)
	if err != nil {
		return err
	}
	id, left := t.Nodes[node].ID, t.departureOf(node)
	switch seat := seats[id]; {
	case seat == adminv1.Seat_SEAT_VOTER:
		return nil
	case seat == adminv1.Seat_SEAT_NON_VOTER:
		t.updateDeparture(node, func(l *departure) { l.emptied = false })
		if left.demoted {
			return t.promoteNode(ctx, node)
		}
	case seat != adminv1.Seat_SEAT_WAITING && left.removed && !left.emptied:
		return t.rejoinEmpty(node)
	}
	return fmt.Errorf("%s has no vote yet (%v)", id, seats[id])
}

func (t *Target) promoteNode(ctx context.Context, node int) error {
	_, err := t.clients[node].Cluster.PromoteMember(ctx, &adminv1.PromoteMemberRequest{Id: t.Nodes[node].ID})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s was just given a vote", t.Nodes[node].ID)
}

// rejoinEmpty gives a removed node an empty folder, as its message demands. The removal is certain, so neither the vote
// nor the data of the node is needed, even while other faults are active.
func (t *Target) rejoinEmpty(node int) error {
	n := t.Nodes[node]
	if err := errors.Join(n.Kill(), n.Wipe(), n.Start()); err != nil {
		return err
	}
	t.updateDeparture(node, func(l *departure) { l.emptied = true })
	t.Note(node, "started with an empty folder, as a new member")
	return fmt.Errorf("%s was just started", n.ID)
}

// restoreVotes takes a step for every node that was asked to give up its membership or its vote.
func (t *Target) restoreVotes(ctx context.Context) error {
	var failed []error
	for node := range t.Nodes {
		if l := t.departureOf(node); l.removed || l.demoted {
			failed = append(failed, t.restoreVote(ctx, node))
		}
	}
	return errors.Join(failed...)
}
