package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// settlePatience is how long one look waits for the voters to have what the leader had. Whoever looks does so again.
const settlePatience = 5 * time.Second

// leave is what a node was asked to give up. It stays noted until it is certain that no such change can happen any more: one
// that nobody answered for may be in the log of a leader that was cut off.
type leave struct {
	removed, demoted bool
	// emptied is true from when the node got an empty folder until it is a member again.
	emptied bool
}

func (t *Target) mark(node int, change func(*leave)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leaves[node]
	change(&l)
	t.leaves[node] = l
}

func (t *Target) left(node int) leave {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leaves[node]
}

// seating is the configuration of a leader at one moment.
type seating struct {
	leader int
	term   uint64
	// last is the end of the leader's log: the configuration is that or an earlier entry.
	last  uint64
	seats map[string]quoratev1.Seat
}

// seating asks the leader who its members are. It may be wrong about that: its newest configuration may be in no other log.
func (t *Target) seating(ctx context.Context) (seating, error) {
	s := seating{leader: t.Leader(ctx), seats: map[string]quoratev1.Seat{}}
	if s.leader < 0 {
		return s, errors.New("nobody leads")
	}
	before, err := t.status(ctx, s.leader)
	if err != nil {
		return s, err
	}
	answer, err := t.clients[s.leader].Cluster.ListMembers(ctx, &quoratev1.ListMembersRequest{})
	if err != nil {
		return s, err
	}
	after, err := t.status(ctx, s.leader)
	if err != nil {
		return s, err
	}
	id := t.Nodes[s.leader].ID
	if answer.GetServedBy() != id || answer.GetLeaderId() != id || before.GetTerm() != after.GetTerm() {
		return s, fmt.Errorf("%s leads no more", id)
	}
	for _, m := range answer.GetMembers() {
		s.seats[m.GetId()] = m.GetSeat()
	}
	own := after.GetMembers()
	if len(own) != 1 {
		return s, fmt.Errorf("%s shows %d members where it was asked about itself", id, len(own))
	}
	s.term, s.last = after.GetTerm(), own[0].GetLastIndex()
	return s, nil
}

// settled is the membership beyond doubt: all voters of it are in the leader's term and know as committed whatever the leader had
// in its log when it was asked. So no other configuration can be in the log of any of them, or come back from there.
func (t *Target) settled(ctx context.Context) (map[string]quoratev1.Seat, error) {
	s, err := t.seating(ctx)
	if err != nil {
		return nil, err
	}
	return s.seats, eventually(ctx, settlePatience, func() error { return s.shared(t, t.statuses(ctx)) })
}

// shared is nil if all voters have it.
func (s seating) shared(t *Target, all []*quoratev1.GetStatusResponse) error {
	for i, one := range all {
		switch id := t.Nodes[i].ID; {
		case s.seats[id] != quoratev1.Seat_SEAT_VOTER:
		case one == nil:
			return fmt.Errorf("%s does not answer", id)
		case one.GetTerm() != s.term:
			return fmt.Errorf("%s is in term %d, not in %d", id, one.GetTerm(), s.term)
		case one.GetCommitIndex() < s.last:
			return fmt.Errorf("%s does not know that entry %d is committed", id, s.last)
		}
	}
	return nil
}

// reseat takes one step to make a node a voter again that was asked to be none, and is nil if it is one. What it does not do is
// what the cluster should do by itself: take a new node in, and give it a vote.
func (t *Target) reseat(ctx context.Context, node int) error {
	seats, err := t.settled(ctx)
	if err != nil {
		return err
	}
	id, asked := t.Nodes[node].ID, t.left(node)
	switch seat := seats[id]; {
	case seat == quoratev1.Seat_SEAT_VOTER:
		return nil
	case seat == quoratev1.Seat_SEAT_NON_VOTER:
		t.mark(node, func(l *leave) { l.emptied = false })
		if asked.demoted {
			return t.promote(ctx, node)
		}
	case seat != quoratev1.Seat_SEAT_WAITING && asked.removed && !asked.emptied:
		return t.renewMember(node)
	}
	return fmt.Errorf("%s has no vote yet (%v)", id, seats[id])
}

func (t *Target) promote(ctx context.Context, node int) error {
	_, err := t.clients[node].Cluster.PromoteMember(ctx, &quoratev1.PromoteMemberRequest{Id: t.Nodes[node].ID})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s was just given a vote", t.Nodes[node].ID)
}

// renewMember gives a node that was removed an empty folder, as its message asks for. The removal is settled: the node's vote
// and what it has on its disk count for nothing any more, whatever else is wrong at the moment.
func (t *Target) renewMember(node int) error {
	n := t.Nodes[node]
	if err := errors.Join(n.Kill(), n.Wipe(), n.Start()); err != nil {
		return err
	}
	t.mark(node, func(l *leave) { l.emptied = true })
	t.Note(node, "started with an empty folder, as a new member")
	return fmt.Errorf("%s was just started", n.ID)
}

// reseatAll takes a step with every node that was asked to give up its seat.
func (t *Target) reseatAll(ctx context.Context) error {
	var failed []error
	for node := range t.Nodes {
		if l := t.left(node); l.removed || l.demoted {
			failed = append(failed, t.reseat(ctx, node))
		}
	}
	return errors.Join(failed...)
}
