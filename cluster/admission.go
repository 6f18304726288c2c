package cluster

import (
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// AuthorizePeer returns an error if the node with this id, which it has proved, may not send raft messages to this node
// or use the RPCs reserved for members. Accepted are
//   - the members of raft's latest configuration on this node, committed or not,
//   - the leader that raft knows, or that a member of that configuration named recently: the cluster may have changed
//     while this node was down, and only the leader can tell it how. This does not apply to a node that was accepted as
//     a member before: it was removed, and raft considers a removed leader the leader for as long as it keeps sending
//     messages,
//   - every node of the cluster while this node is not in that configuration itself: without state it cannot know
//     better, and while it receives the log it applies outdated configurations. It has no vote then.
func (n *Node) AuthorizePeer(id string) error {
	servers := n.servers()
	if !containsServer(servers, n.config.ID) {
		return nil
	}
	if containsServer(servers, id) {
		n.knownMembers.Store(id, true)
		return nil
	}
	_, removed := n.knownMembers.Load(id)
	if _, leader := n.raft.LeaderWithID(); !removed && (string(leader) == id || n.isNamedLeader(servers, id)) {
		return nil
	}
	return fmt.Errorf("node %s is not a member of the cluster's configuration as node %s knows it", id, n.config.ID)
}

// isNamedLeader reports whether a member of the configuration recently named the node as leader.
func (n *Node) isNamedLeader(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool {
		answer := n.answers.findAnswer(string(s.ID))
		return answer.Leader == id && answer.isCurrent()
	})
}

func (n *Node) isMember(id string) bool { return containsServer(n.servers(), id) }

// checkNotice returns an error if the sender of a notice is not entitled to it. The certificate of the caller must be
// that of the leader named in the notice, and raft must know the same leader. A node without state knows no leader and
// accepts any node of the cluster; a node that has state and knows no leader accepts a notice of its removal from
// members of its configuration.
func (n *Node) checkNotice(notice Notice) error {
	if notice.From == "" {
		return nil // plain text: the sender is not authenticated
	}
	leader := n.leaderID()
	switch {
	case notice.From != notice.Leader:
		return newError(Unsafe, true, nil, "node %s sends a notice in the name of %s; only the leader "+
			"itself may do that",
			notice.From, notice.Leader)
	case leader != "" && leader != notice.From:
		return newError(Unsafe, true, nil, "node %s sends a notice, but the leader known to node %s is %s; "+
			"only the leader "+
			"may do that",
			notice.From, n.config.ID, leader)
	case leader == "" && n.isMember(n.config.ID) && !n.isMember(notice.From):
		return newError(Unsafe, true, nil, "node %s sends a notice, but is not a member known to node %s", notice.From,
			n.config.ID)
	}
	return nil
}
