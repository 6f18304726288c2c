package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// youth is how long a leadership counts as new.
const youth = 10 * time.Second

// The changes of the membership. Only the established leader makes them, one at a time; each answers whether it changed
// anything, so that it can be repeated safely. Errors are *Error: Unsafe and UnknownMember are refusals with a way out.

// Join makes this node dial a gossip address, and answers whether that is news. Any node can.
func (n *Node) Join(ctx context.Context, address string) (bool, error) {
	if err := n.serving(); err != nil {
		return false, err
	}
	news, err := n.parts.Discovery.Join(ctx, address)
	if err != nil {
		return false, failure(Unsafe, true, err, "nobody of this cluster can be reached at the gossip address %s; check the address, "+
			"the cluster name, and that the node runs", address)
	}
	return news, nil
}

// TakeIn gives a node that waits for it a seat without a vote, whether or not that happens by itself.
func (n *Node) TakeIn(ctx context.Context, id string) (bool, error) {
	return n.alter(ctx, func(l *life) (bool, error) {
		h, known := seatOf(l.health(), id)
		switch {
		case !known:
			return false, failure(UnknownMember, true, nil, "no node %q is heard; start it with the cluster name of this cluster, and "+
				"with --join or `quorate cluster join ADDRESS`", id)
		case h.Seat == SeatVoter && h.Standing.Instance != "":
			return true, l.demote(id)
		case h.Seat == SeatVoter || h.Seat == SeatNonVoter:
			return false, nil
		case h.Seat == SeatWaiting:
			return true, l.add(h)
		}
		return false, failure(Unsafe, true, nil, "%s is no member and is not known to be new: it has data of its own, from before it was "+
			"removed or of another cluster, or it does not answer; stop it, empty its data folder and start it again", id)
	})
}

// Promote gives a member a vote. It is refused for one that is not well or not caught up, unless it is forced.
func (n *Node) Promote(ctx context.Context, id string, force bool) (bool, error) {
	return n.alter(ctx, func(l *life) (bool, error) {
		h, err := l.member(id)
		switch {
		case err != nil || h.Seat == SeatVoter:
			return false, err
		case h.Standing.Instance != "":
			return false, failure(Unsafe, true, nil, "%s has no data yet; wait until it was taken in", id)
		case !h.Healthy && !force:
			return false, l.unwell("%s is not ready for a vote: %s; wait, or repeat it with --force", id, h.Problem)
		}
		return true, l.promote(h.Member)
	})
}

// Demote takes a member's vote. It is refused if those that remain are too few or not well, unless it is forced. A leader
// hands its leadership over and answers NotLeader: whoever leads then is to be asked again.
func (n *Node) Demote(ctx context.Context, id string, force bool) (bool, error) {
	return n.reduce(ctx, id, force, func(l *life) (bool, error) {
		h, err := l.member(id)
		if err != nil || h.Seat != SeatVoter {
			return false, err
		}
		l.node.log.Info("taking a member's vote", "member", id, "forced", force)
		return true, l.demote(id)
	})
}

// Remove removes a member; one that is unknown has been removed. The rules are those of Demote.
func (n *Node) Remove(ctx context.Context, id string, force bool) (bool, error) {
	return n.reduce(ctx, id, force, func(l *life) (bool, error) {
		h, known := seatOf(l.health(), id)
		if !known || h.Seat != SeatVoter && h.Seat != SeatNonVoter {
			return false, nil
		}
		l.node.log.Info("removing a member", "member", id, "forced", force)
		return true, l.remove(id)
	})
}

// TransferLeader hands the leadership to a voter; an empty id is whoever is furthest.
func (n *Node) TransferLeader(ctx context.Context, id string) (bool, error) {
	if id == n.config.ID && n.IsLeader() {
		return false, nil
	}
	return n.alter(ctx, func(l *life) (bool, error) {
		if id == "" {
			return true, l.handOver(ctx)
		}
		h, err := l.member(id)
		switch {
		case err != nil:
			return false, err
		case h.Seat != SeatVoter:
			return false, failure(Unsafe, true, nil, "%s is no voter and cannot lead; promote it first, or name one of %s", id,
				names(votersOf(l.health())))
		case !h.Healthy:
			return false, l.unwell("%s cannot lead now: %s; name another voter", id, h.Problem)
		}
		l.node.log.Info("handing the leadership over", "to", id)
		err = await(ctx, l.node.raft.LeadershipTransferToServer(raft.ServerID(h.ID), raft.ServerAddress(h.RaftAddr)))
		return true, l.transferred(err)
	})
}

// alter runs one change as the leader.
func (n *Node) alter(ctx context.Context, f func(*life) (bool, error)) (bool, error) {
	if err := n.serving(); err != nil {
		return false, err
	}
	l := n.life.Load()
	if l == nil {
		return false, n.refuseToLead()
	}
	if err := l.awaitFirst(ctx); err != nil {
		return false, err
	}
	return l.change(ctx, func() (bool, error) { return f(l) })
}

// reduce runs a change that takes a vote away, if that leaves enough.
func (n *Node) reduce(ctx context.Context, id string, force bool, f func(*life) (bool, error)) (bool, error) {
	return n.alter(ctx, func(l *life) (bool, error) {
		list := l.health()
		if h, _ := seatOf(list, id); h.Seat == SeatVoter {
			if err := l.releases(list, id, force); err != nil {
				return false, err
			}
			if id == n.config.ID {
				return false, l.stepAside(ctx)
			}
		}
		return f(l)
	})
}

// unwell refuses a change because of the health of members. While the leadership is young they may still be finding out about
// it, so this is no verdict yet and the caller may ask again.
func (l *life) unwell(format string, args ...any) *Error {
	if time.Since(l.began) < youth {
		return failure(NoLeader, true, failure(Unsafe, true, nil, format, args...), "the leadership is new and not all members have "+
			"found out; ask again in a moment")
	}
	return failure(Unsafe, true, nil, format, args...)
}

// releases is nil if a voter may lose its vote. The last one never may, whatever is forced.
func (l *life) releases(list []Health, id string, force bool) error {
	if voters := votersOf(list); len(voters) == 1 {
		return failure(Unsafe, true, nil, "%s is the last voter; without one there is no cluster", id)
	}
	if err := l.spares(list, id); err != nil && !force {
		return err
	}
	return nil
}

// spares is nil if a voter can be missed: enough others remain, and of those a majority is well.
func (l *life) spares(list []Health, id string) error {
	var rest []Health
	for _, h := range votersOf(list) {
		if h.ID != id {
			rest = append(rest, h)
		}
	}
	if least := l.node.config.MinQuorum; len(rest) < least {
		return failure(Unsafe, true, nil, "without %s there would be %d voters (%s), and min-quorum is %d; add a member first, or repeat "+
			"it with --force", id, len(rest), names(rest), least)
	}
	if healthy, needed := healthyOf(rest), len(rest)/2+1; healthy < needed {
		return l.unwell("without %s only %d of %d voters would be well, and decisions need %d; repair one of them first, "+
			"or repeat it with --force", id, healthy, len(rest), needed)
	}
	return nil
}

// member finds a member of raft's configuration.
func (l *life) member(id string) (Health, error) {
	if h, _ := seatOf(l.health(), id); h.Seat == SeatVoter || h.Seat == SeatNonVoter {
		return h, nil
	}
	return Health{}, failure(UnknownMember, true, nil, "the cluster has no member %q; `quorate cluster members` shows all", id)
}

// stepAside hands the leadership over, so that the next leader can do what this one was asked about itself.
func (l *life) stepAside(ctx context.Context) error {
	if err := l.handOver(ctx); err != nil {
		return err
	}
	e := failure(NotLeader, true, nil, "node %s has handed the leadership over to be demoted or removed; ask again", l.node.config.ID)
	e.Leader = l.node.leaderHint()
	return e
}

func (l *life) handOver(ctx context.Context) error {
	if len(l.node.voters()) < 2 {
		return failure(Unsafe, true, nil, "%s is the only voter; there is nobody to hand the leadership to", l.node.config.ID)
	}
	l.node.log.Info("handing the leadership over")
	return l.transferred(l.node.handOver(ctx))
}

func (l *life) transferred(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return failure(Deadline, false, err, "the leadership was not handed over in time")
	}
	return failure(LeadershipLost, false, err, "the leadership was not handed over; look with `quorate cluster members` who leads")
}

func names(list []Health) string {
	ids := make([]string, len(list))
	for i, h := range list {
		ids[i] = h.ID
	}
	return strings.Join(ids, ", ")
}
