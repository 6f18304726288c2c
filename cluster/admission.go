package cluster

import (
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// AuthorizePeer is an error if a node, which has proved its id, may not take part in decisions with this one: send messages of
// raft, and ask what only members may ask. Admitted are
//   - the members of raft's latest configuration as this node knows it, committed or not,
//   - the leader that raft knows, and one that a member of that configuration named lately: while this node was away the cluster
//     may have changed, and only the leader can tell it how. Neither counts for a node that this one has admitted as a member
//     before: it was removed, and raft takes a removed leader for the leader for as long as it goes on to say so,
//   - every node of the cluster while this node is not in that configuration itself: without state it cannot know better, and
//     while it receives the log it passes through configurations that are long gone. It has no vote then.
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

// isNamedLeader tells whether a member of the configuration said lately that a node leads.
func (n *Node) isNamedLeader(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool {
		said := n.answers.findAnswer(string(s.ID))
		return said.Leader == id && said.isCurrent()
	})
}

func (n *Node) isMember(id string) bool { return containsServer(n.servers(), id) }

// checkNotice is nil if a notice comes from a node that may give it. The certificate of the caller must be that of the leader that
// it names, and that leader must be the one that raft knows. A node without state knows none, and believes any node of the
// cluster; one that has state and knows no leader is told by members of its configuration that it was removed.
func (n *Node) checkNotice(notice Notice) error {
	if notice.From == "" {
		return nil // plain text: nobody proves anything
	}
	leader := n.leaderID()
	switch {
	case notice.From != notice.Leader:
		return newError(Unsafe, true, nil, "node %s gives a notice in the name of %s: only the leader itself may", notice.From, notice.Leader)
	case leader != "" && leader != notice.From:
		return newError(Unsafe, true, nil, "node %s gives a notice, and the leader that node %s knows is %s: only the leader may",
			notice.From, n.config.ID, leader)
	case leader == "" && n.isMember(n.config.ID) && !n.isMember(notice.From):
		return newError(Unsafe, true, nil, "node %s gives a notice, and is not a member as node %s knows them", notice.From, n.config.ID)
	}
	return nil
}
