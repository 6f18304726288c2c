package cluster

import (
	"slices"

	"github.com/hashicorp/raft"
)

// hasten starts the election at once on the only voter: it need not wait for a leader that cannot exist.
func (n *Node) hasten() {
	if voters := n.voters(); len(voters) == 1 && voters[0] == raft.ServerID(n.config.ID) {
		n.campaign()
	}
}

// provoke starts an election because the leader misjudges what this node has, and only a new leadership will not.
func (n *Node) provoke() {
	select {
	case <-n.opened:
	case <-n.ctx.Done():
		return
	}
	if slices.Contains(n.voters(), raft.ServerID(n.config.ID)) {
		n.campaign()
	}
}

// campaign tells raft to become a candidate now, as a leader does that hands the leadership over. raft has no call for
// it, but takes it as a message, also from itself. An election is always safe.
func (n *Node) campaign() {
	self, address := raft.ServerID(n.config.ID), raft.ServerAddress(n.config.RaftAdvertise)
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: []byte(address),
	}}
	if err := n.guard.TimeoutNow(self, address, &request, &raft.TimeoutNowResponse{}); err != nil {
		n.log.Debug("cannot start an election at once", "error", err)
	}
}
