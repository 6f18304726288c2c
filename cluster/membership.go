package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// newLeadershipPeriod is how long a leadership counts as new.
const newLeadershipPeriod = 10 * time.Second

// The changes of the membership. Only the established leader makes them, one at a time; each answers whether it changed
// anything, so that it can be repeated safely. Errors are *Error: Unsafe and UnknownMember are refusals with a way out.

// Join makes this node dial a gossip address, and answers whether that is news. Any node can.
func (n *Node) Join(ctx context.Context, address string) (bool, error) {
	if err := n.checkServing(); err != nil {
		return false, err
	}
	news, err := n.parts.Discovery.Join(ctx, address)
	if err != nil {
		return false, newError(Unsafe, true, err, "nobody of this cluster can be reached at the gossip address %s; check the address, "+
			"the cluster name, and that the node runs", address)
	}
	return news, nil
}

// AddNode gives a node that waits for it a seat without a vote, whether or not that happens by itself.
func (n *Node) AddNode(ctx context.Context, id string) (bool, error) {
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		h, known := findNode(l.listHealth(), id)
		switch {
		case !known:
			return false, newError(UnknownMember, true, nil, "no node %q is heard; start it with the cluster name of this cluster, and "+
				"with --join or `quorate cluster join ADDRESS`", id)
		case h.Role == RoleVoter && h.Status.Instance != "":
			return true, l.demoteVoter(id)
		case h.Role == RoleVoter || h.Role == RoleNonVoter:
			return false, nil
		case h.Role == RoleWaiting:
			return true, l.addNonvoter(h)
		}
		return false, newError(Unsafe, true, nil, "%s is no member and is not known to be new: it has data of its own, from before it was "+
			"removed or of another cluster, or it does not answer; stop it, empty its data folder and start it again", id)
	})
}

// Promote gives a member a vote. It is refused for one that is not well or not caught up, unless it is forced.
func (n *Node) Promote(ctx context.Context, id string, force bool) (bool, error) {
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		h, err := l.findMember(id)
		switch {
		case err != nil || h.Role == RoleVoter:
			return false, err
		case h.Status.Instance != "":
			return false, newError(Unsafe, true, nil, "%s has no data yet; wait until it was taken in", id)
		case !h.Healthy && !force:
			return false, l.unhealthyError("%s is not ready for a vote: %s; wait, or repeat it with --force", id, h.Problem)
		}
		return true, l.promoteToVoter(h.Member)
	})
}

// Demote takes a member's vote. It is refused if those that remain are too few or not well, unless it is forced. A leader
// hands its leadership over and answers NotLeader: whoever leads then is to be asked again.
func (n *Node) Demote(ctx context.Context, id string, force bool) (bool, error) {
	return n.removeVote(ctx, id, force, func(l *leadership) (bool, error) {
		h, err := l.findMember(id)
		if err != nil || h.Role != RoleVoter {
			return false, err
		}
		l.node.log.Info("taking a member's vote", "member", id, "forced", force)
		return true, l.demoteVoter(id)
	})
}

// Remove removes a member; one that is unknown has been removed. The rules are those of Demote.
func (n *Node) Remove(ctx context.Context, id string, force bool) (bool, error) {
	return n.removeVote(ctx, id, force, func(l *leadership) (bool, error) {
		h, known := findNode(l.listHealth(), id)
		if !known || h.Role != RoleVoter && h.Role != RoleNonVoter {
			return false, nil
		}
		l.node.log.Info("removing a member", "member", id, "forced", force)
		return true, l.removeServer(id)
	})
}

// TransferLeader hands the leadership to a voter; an empty id is whoever is furthest.
func (n *Node) TransferLeader(ctx context.Context, id string) (bool, error) {
	if id == n.config.ID && n.IsLeader() {
		return false, nil
	}
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		if id == "" {
			return true, l.transferLeadership(ctx)
		}
		h, err := l.findMember(id)
		switch {
		case err != nil:
			return false, err
		case h.Role != RoleVoter:
			return false, newError(Unsafe, true, nil, "%s is no voter and cannot lead; promote it first, or name one of %s", id,
				joinIDs(votersOf(l.listHealth())))
		case !h.Healthy:
			return false, l.unhealthyError("%s cannot lead now: %s; name another voter", id, h.Problem)
		}
		l.node.log.Info("handing the leadership over", "to", id)
		err = awaitFuture(ctx, l.node.raft.LeadershipTransferToServer(raft.ServerID(h.ID), raft.ServerAddress(h.RaftAddr)))
		return true, l.transferError(err)
	})
}

// changeMembership runs one change as the leader.
func (n *Node) changeMembership(ctx context.Context, f func(*leadership) (bool, error)) (bool, error) {
	if err := n.checkServing(); err != nil {
		return false, err
	}
	l := n.leadership.Load()
	if l == nil {
		return false, n.notLeaderError()
	}
	if err := l.awaitFirstProbe(ctx); err != nil {
		return false, err
	}
	return l.changeConfiguration(ctx, func() (bool, error) { return f(l) })
}

// removeVote runs a change that takes a vote away, if that leaves enough.
func (n *Node) removeVote(ctx context.Context, id string, force bool, f func(*leadership) (bool, error)) (bool, error) {
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		list := l.listHealth()
		if h, _ := findNode(list, id); h.Role == RoleVoter {
			if err := l.checkVoteRemoval(list, id, force); err != nil {
				return false, err
			}
			if id == n.config.ID {
				return false, l.transferBeforeRemoval(ctx)
			}
		}
		return f(l)
	})
}

// unhealthyError refuses a change because of the health of members. While the leadership is young they may still be finding out about
// it, so this is no verdict yet and the caller may ask again.
func (l *leadership) unhealthyError(format string, args ...any) *Error {
	if time.Since(l.startedAt) < newLeadershipPeriod {
		return newError(NoLeader, true, newError(Unsafe, true, nil, format, args...), "the leadership is new and not all members have "+
			"found out; ask again in a moment")
	}
	return newError(Unsafe, true, nil, format, args...)
}

// checkVoteRemoval is nil if a voter may lose its vote. The last one never may, whatever is forced.
func (l *leadership) checkVoteRemoval(list []NodeHealth, id string, force bool) error {
	if voters := votersOf(list); len(voters) == 1 {
		return newError(Unsafe, true, nil, "%s is the last voter; without one there is no cluster", id)
	}
	if err := l.checkQuorumWithout(list, id); err != nil && !force {
		return err
	}
	return nil
}

// checkQuorumWithout is nil if a voter can be missed: enough others remain, and of those a majority is well.
func (l *leadership) checkQuorumWithout(list []NodeHealth, id string) error {
	var rest []NodeHealth
	for _, h := range votersOf(list) {
		if h.ID != id {
			rest = append(rest, h)
		}
	}
	if least := l.node.config.MinQuorum; len(rest) < least {
		return newError(Unsafe, true, nil, "without %s there would be %d voters (%s), and min-quorum is %d; add a member first, or repeat "+
			"it with --force", id, len(rest), joinIDs(rest), least)
	}
	if healthy, needed := countHealthy(rest), len(rest)/2+1; healthy < needed {
		return l.unhealthyError("without %s only %d of %d voters would be well, and decisions need %d; repair one of them first, "+
			"or repeat it with --force", id, healthy, len(rest), needed)
	}
	return nil
}

// findMember finds a member of raft's configuration.
func (l *leadership) findMember(id string) (NodeHealth, error) {
	if h, _ := findNode(l.listHealth(), id); h.Role == RoleVoter || h.Role == RoleNonVoter {
		return h, nil
	}
	return NodeHealth{}, newError(UnknownMember, true, nil, "the cluster has no member %q; `quorate cluster members` shows all", id)
}

// stopAfterFault hands the leadership over, so that the next leader can do what this one was asked about itself.
func (l *leadership) transferBeforeRemoval(ctx context.Context) error {
	if err := l.transferLeadership(ctx); err != nil {
		return err
	}
	e := newError(NotLeader, true, nil, "node %s has handed the leadership over to be demoted or removed; ask again", l.node.config.ID)
	e.Leader = l.node.leaderID()
	return e
}

func (l *leadership) transferLeadership(ctx context.Context) error {
	if len(l.node.voterIDs()) < 2 {
		return newError(Unsafe, true, nil, "%s is the only voter; there is nobody to hand the leadership to", l.node.config.ID)
	}
	l.node.log.Info("handing the leadership over")
	return l.transferError(l.node.transferLeadership(ctx))
}

func (l *leadership) transferError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return newError(Deadline, false, err, "the leadership was not handed over in time")
	}
	return newError(LeadershipLost, false, err, "the leadership was not handed over; look with `quorate cluster members` who leads")
}

func joinIDs(list []NodeHealth) string {
	ids := make([]string, len(list))
	for i, h := range list {
		ids[i] = h.ID
	}
	return strings.Join(ids, ", ")
}
