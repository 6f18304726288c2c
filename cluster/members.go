package cluster

import "github.com/quorate/quorate/cluster/internal/peers"

type (
	// Member is one node of the cluster as this node knows it.
	Member = peers.Member
	// NodeStatus is the status of one node as reported by itself.
	NodeStatus = peers.NodeStatus
	// DiskStatus is the state of a node's disk when it was last checked.
	DiskStatus = peers.DiskStatus
	// Checkpoint is the digest, in hexadecimal, of the state of a node after the log entry at Index.
	Checkpoint = peers.Checkpoint
	// Peer is what a node announces about itself.
	Peer = peers.Peer
	// Discovery makes nodes known to each other. Its information is a hint that may be late or wrong: raft decides
	// membership.
	Discovery = peers.Discovery
)

// Members returns the nodes sorted by id: the servers of raft's configuration, and live peers known only from gossip
// (not voters; they wait to be added).
func (n *Node) Members() []Member { return n.roster.Members() }
