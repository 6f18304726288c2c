package cluster

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
)

type admission struct {
	self    string
	raft    *raft.Raft
	roster  *peers.Roster
	leader  *leaderFinder
	answers *peers.Answers
	// known are the ids of nodes that this node has accepted as members.
	known sync.Map
}

// AuthorizePeer returns an error if the node with this id, which it has proved, may not send raft messages to this node
// or use the RPCs reserved for members.
func (n *Node) AuthorizePeer(id string) error { return n.admission.authorize(id) }

// authorize returns an error if the node with this id, which it has proved, may not send raft messages to this node
// or use the RPCs reserved for members. Accepted are
//   - the members of raft's latest configuration on this node, committed or not,
//   - the leader that raft knows, or that a member of that configuration named recently: the cluster may have changed
//     while this node was down, and only the leader can tell it how. This does not apply to a node that was accepted as
//     a member before: it was removed, and raft considers a removed leader the leader for as long as it keeps sending
//     messages,
//   - every node of the cluster while this node is not in that configuration itself: without state it cannot know
//     better, and while it receives the log it applies outdated configurations. It has no vote then.
func (a *admission) authorize(id string) error {
	servers := a.roster.Servers()
	if !peers.Contains(servers, a.self) {
		return nil
	}
	if peers.Contains(servers, id) {
		a.known.Store(id, true)
		return nil
	}
	_, removed := a.known.Load(id)
	if _, leader := a.raft.LeaderWithID(); !removed && (string(leader) == id || a.isNamedLeader(servers, id)) {
		return nil
	}
	return fmt.Errorf("node %s is not a member of the cluster's configuration as node %s knows it", id, a.self)
}

func (a *admission) isNamedLeader(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool {
		answer := a.answers.Find(string(s.ID))
		return answer.Leader == id && answer.IsCurrent()
	})
}

// checkNotice requires that the certificate of the caller is that of the leader named in the notice, and that raft
// knows the same leader. A node without state knows no leader and accepts any node of the cluster; a node that has
// state and knows no leader accepts a notice of its removal from members of its configuration.
func (a *admission) checkNotice(notice Notice) error {
	if notice.From == "" {
		return nil // plain text: the sender is not authenticated
	}
	leader := a.leader.id()
	switch {
	case notice.From != notice.Leader:
		return newError(Unsafe, true, nil, "node %s sends a notice in the name of %s; only the leader "+
			"itself may do that",
			notice.From, notice.Leader)
	case leader != "" && leader != notice.From:
		return newError(Unsafe, true, nil, "node %s sends a notice, but the leader known to node %s is %s; "+
			"only the leader "+
			"may do that",
			notice.From, a.self, leader)
	case leader == "" && a.roster.Contains(a.self) && !a.roster.Contains(notice.From):
		return newError(Unsafe, true, nil, "node %s sends a notice, but is not a member known to node %s", notice.From,
			a.self)
	}
	return nil
}
