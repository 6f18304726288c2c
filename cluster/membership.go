package cluster

import (
	"context"
	"strings"
	"time"
)

// newLeadershipPeriod is how long a leadership counts as new.
const newLeadershipPeriod = 10 * time.Second

// Membership changes. They work only on the established leader, one at a time. Each reports whether it changed
// anything, so that repeating it is safe. Errors are *Error; the text of Unsafe and UnknownMember says what to do.

// Join makes this node contact a gossip address and reports whether the peer there was unknown. It works on every node.
func (n *Node) Join(ctx context.Context, address string) (bool, error) {
	if err := n.service.check(); err != nil {
		return false, err
	}
	isNew, err := n.parts.Discovery.Join(ctx, address)
	if err != nil {
		return false, newError(Unsafe, true, err,
			"no node of this cluster answers at the gossip address %s; check the "+
				"address, the cluster name, and that the node runs", address)
	}
	return isNew, nil
}

// AddNode adds a waiting node as a non-voter. It does not depend on ManualJoin.
func (n *Node) AddNode(ctx context.Context, id string) (bool, error) {
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		h, known := findNode(l.health.list(), id)
		switch {
		case !known:
			return false, newError(UnknownMember, true, nil,
				"no node %q is known; start it with the cluster name of this "+
					"cluster, and with --join or `quorate member create ADDRESS`", id)
		case h.Role == RoleVoter && h.Status.Instance != "":
			return true, l.servers.demoteVoter(id)
		case h.Role == RoleVoter || h.Role == RoleNonVoter:
			return false, nil
		case h.Role == RoleWaiting:
			return true, l.servers.addNonvoter(h)
		}
		return false, newError(Unsafe, true, nil,
			"%s is not a member and is not known to be new: it has data from before "+
				"it was removed or of another cluster, or it does not answer; stop it, empty its data folder "+
				"and start it again", id)
	})
}

// Promote makes a member a voter. Unless forced, it is refused for a member that is unhealthy or trails too far.
func (n *Node) Promote(ctx context.Context, id string, force bool) (bool, error) {
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		h, err := l.health.findMember(id)
		switch {
		case err != nil || h.Role == RoleVoter:
			return false, err
		case h.Status.Instance != "":
			return false, newError(Unsafe, true, nil, "%s has no data yet; wait until it is admitted", id)
		case !h.Healthy && !force:
			return false, l.quorum.unhealthyError(
				"%s is not ready for a vote: %s; wait, or repeat it with --force", id, h.Problem)
		}
		return true, l.servers.promoteToVoter(h.Member)
	})
}

// Demote makes a voter a non-voter. Unless forced, it is refused if too few healthy voters would remain. A leader that
// is asked to demote itself transfers its leadership and returns NotLeader: the caller must ask the next leader.
func (n *Node) Demote(ctx context.Context, id string, force bool) (bool, error) {
	return n.removeVote(ctx, id, force, func(l *leadership) (bool, error) {
		h, err := l.health.findMember(id)
		if err != nil || h.Role != RoleVoter {
			return false, err
		}
		n.log.Info("taking a member's vote", "member", id, "forced", force)
		return true, l.servers.demoteVoter(id)
	})
}

// Remove removes a member and reports no change for an unknown one. The rules are those of Demote.
func (n *Node) Remove(ctx context.Context, id string, force bool) (bool, error) {
	return n.removeVote(ctx, id, force, func(l *leadership) (bool, error) {
		h, known := findNode(l.health.list(), id)
		if !known || h.Role != RoleVoter && h.Role != RoleNonVoter {
			return false, nil
		}
		n.log.Info("removing a member", "member", id, "forced", force)
		return true, l.servers.removeServer(id)
	})
}

// TransferLeader transfers the leadership to a voter; with an empty id, to the most advanced one.
func (n *Node) TransferLeader(ctx context.Context, id string) (bool, error) {
	if id == n.config.ID && n.leader.leads() {
		return false, nil
	}
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		if id == "" {
			return true, n.elections.transferAway(ctx)
		}
		h, err := l.health.findMember(id)
		switch {
		case err != nil:
			return false, err
		case h.Role != RoleVoter:
			return false, newError(Unsafe, true, nil,
				"%s is not a voter and cannot lead; promote it first, or name one of %s",
				id, joinIDs(votersOf(l.health.list())))
		case !h.Healthy:
			return false, l.quorum.unhealthyError("%s cannot lead now: %s; name another voter", id, h.Problem)
		}
		n.log.Info("transferring the leadership", "to", id)
		return true, n.elections.transferTo(ctx, h.Member)
	})
}

func (n *Node) changeMembership(ctx context.Context, f func(*leadership) (bool, error)) (bool, error) {
	l, err := n.leader.established()
	if err != nil {
		return false, err
	}
	if err := l.health.awaitFirstProbe(ctx); err != nil {
		return false, err
	}
	return l.servers.change(ctx, func() (bool, error) { return f(l) })
}

func (n *Node) removeVote(ctx context.Context, id string, force bool, f func(*leadership) (bool, error)) (bool, error) {
	return n.changeMembership(ctx, func(l *leadership) (bool, error) {
		list := l.health.list()
		if h, _ := findNode(list, id); h.Role == RoleVoter {
			if err := l.quorum.checkVoteRemoval(list, id, force); err != nil {
				return false, err
			}
			if id == n.config.ID {
				return false, n.elections.transferBeforeRemoval(ctx)
			}
		}
		return f(l)
	})
}

// quorumRules say which members must stay so that the cluster can decide.
type quorumRules struct {
	startedAt time.Time // of the leadership
	least     int       // Config.MinQuorum
}

// unhealthyError refuses a change because members are unhealthy. While the leadership is new the health table may still
// be incomplete, so the caller is asked to retry.
func (q *quorumRules) unhealthyError(format string, args ...any) *Error {
	if time.Since(q.startedAt) < newLeadershipPeriod {
		return newError(NoLeader, true, newError(Unsafe, true, nil, format, args...),
			"the leadership is new and not all members know of it yet; retry in a moment")
	}
	return newError(Unsafe, true, nil, format, args...)
}

// checkVoteRemoval returns an error if a voter must not lose its vote. The last voter never may, even if forced.
func (q *quorumRules) checkVoteRemoval(list []NodeHealth, id string, force bool) error {
	if voters := votersOf(list); len(voters) == 1 {
		return newError(Unsafe, true, nil, "%s is the last voter; without one there is no cluster", id)
	}
	if err := q.checkQuorumWithout(list, id); err != nil && !force {
		return err
	}
	return nil
}

// checkQuorumWithout requires that, without the given voter, enough voters remain and a majority of them is healthy.
func (q *quorumRules) checkQuorumWithout(list []NodeHealth, id string) error {
	var rest []NodeHealth
	for _, h := range votersOf(list) {
		if h.ID != id {
			rest = append(rest, h)
		}
	}
	if least := q.least; len(rest) < least {
		return newError(Unsafe, true, nil, "without %s there would be %d voters (%s), and min-quorum is "+
			"%d; add a member "+
			"first, or repeat it with --force", id, len(rest), joinIDs(rest), least)
	}
	if healthy, needed := countHealthy(rest), len(rest)/2+1; healthy < needed {
		return q.unhealthyError(
			"without %s only %d of %d voters would be healthy, and decisions need %d; repair one of "+
				"them first, or repeat it with --force", id, healthy, len(rest), needed)
	}
	return nil
}

func joinIDs(list []NodeHealth) string {
	ids := make([]string, len(list))
	for i, h := range list {
		ids[i] = h.ID
	}
	return strings.Join(ids, ", ")
}
