package cluster

// Status returns the status of this node. It works in every state, also after a fault.
func (n *Node) Status() NodeStatus {
	s := NodeStatus{
		ID: n.config.ID, State: n.leader.stateName(), Leader: n.leader.id(), Term: n.raft.CurrentTerm(),
		AppliedIndex: n.ledger.Applied(), CommitIndex: n.raft.CommitIndex(), LastIndex: n.raft.LastIndex(),
		LastContact: n.leader.contactAge(), Version: n.config.Version, FeatureLevel: n.config.Formats.Newest(),
		Wall: n.wall(), CivilTime: n.times.leaderCivilTime(), LedgerTime: n.times.leaderLedgerTime(),
		Instance:          n.join.waitingInstance(),
		PromoteWhenStable: n.join.promoteWhenStable.Load(),
		Removed:           n.joiner.removed.Load(),

		Checkpoints: n.checkpoints.newestFirst(n.config.ID), ClusterLevel: n.ledger.Format(),
		RaftAddr: n.config.RaftAdvertise, HTTPAddr: n.config.HTTPAdvertise, ClusterName: n.config.ClusterName,
		Expect: n.config.BootstrapExpect, Intent: n.directory.Own().Intent,
		LogStore: n.parts.LogStore, TimeZones: n.zones.Version(), Quarantined: n.quarantined.Load(),
	}
	if err := n.readiness.check(); err != nil {
		s.Problem = err.Error()
	}
	s.Disk = n.disk.status()
	s.Warning = n.disk.warning(s.Disk)
	return s
}

func (n *Node) wall() int64 {
	if n.parts.Wall == nil {
		return wallNow()
	}
	return n.parts.Wall()
}
