package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
)

const (
	// logCacheEntries is the number of entries kept in memory, for slightly slow followers and for reads. An entry holds
	// many commands: hundreds of kilobytes under load.
	logCacheEntries = 128
	// logCacheBytes bounds those entries in bytes.
	logCacheBytes = 16 << 20
	// maxAppendEntries bounds the entries of one message to a follower, for the same reason.
	maxAppendEntries = 64
	// futileInstalls is how many snapshots in a row may bring no progress before raft must be restarted.
	futileInstalls = 3
)

// startRaft repairs and verifies the stores, then starts raft on the guarded parts. It reports whether there was state.
func (n *Node) startRaft() (hasState bool, err error) {
	p := n.parts
	n.logSize = raftguard.NewLogSize(p.Logs)
	n.diskLatency = raftguard.NewDiskLatency(n.logSize)
	checked := raftguard.NewChecksum(n.diskLatency)
	if err := n.verifyLog(checked); err != nil {
		return false, err
	}
	stores := raftguard.NewFailStopStore(checked, p.Stable, n.fail)
	n.logs = raftguard.NewLogCache(stores, logCacheEntries, logCacheBytes)
	if hasState, err = n.checkRaftState(checked, stores); err != nil {
		return false, err
	}
	n.stable = stores
	n.transport = raftguard.NewTransport(n.guardTransport(hasState),
		raftguard.SilenceWhile(n.isDiskStalled), raftguard.ResolveAddresses(n.presentAddress))
	recorded, err := raftguard.NewRecordedSnapshots(p.Snapshots, stores)
	if err != nil {
		return false, err
	}
	monotonic := raftguard.NewMonotonicSnapshots(recorded, futileInstalls, n.forceElection, n.log)
	snapshots := raftguard.NewWatchdog(monotonic, n.logs, futileInstalls, n.failStuckInstall, n.log)
	n.raft, err = raft.NewRaft(n.raftConfig(), instrumentedFSM{n.ledger, n.config.Observer}, n.logs, stores, snapshots,
		n.transport)
	return hasState, err
}

// verifyLog drops a log left behind by a deposed leader (raft#697) and reads all entries once, so that raft starts from
// an intact log.
func (n *Node) verifyLog(logs raft.LogStore) error {
	if _, err := raftguard.RepairTail(logs, n.parts.Snapshots, n.log); err != nil {
		return err
	}
	list, err := n.parts.Snapshots.List()
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	var newest uint64
	if len(list) > 0 {
		newest = list[0].Index
	}
	return raftguard.VerifyLog(logs, newest)
}

// checkRaftState reports whether the node has state of its own to start from. Raft is not started on the remains of
// lost state: with an old configuration among them the node could elect itself.
func (n *Node) checkRaftState(logs raft.LogStore, stable raft.StableStore) (hasState bool, err error) {
	history, err := raftguard.CheckHistory(logs, stable, n.parts.Snapshots)
	switch {
	case err != nil:
		return false, fmt.Errorf("check the raft state: %w", err)
	case history.Lost != "" && !history.TermOnly:
		return false, &raftguard.LostHistoryError{Reason: history.Lost}
	case history.Lost != "":
		n.joiner.lost = cmp.Or(n.parts.Lost, history.Lost)
	case history.Empty:
		n.joiner.lost = n.parts.Lost
	}
	return !history.Empty && history.Lost == "", nil
}

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.config.ID)
	c.Logger = raftguard.NewRepeatsLog(n.config.Logger.Named("raft"))
	c.NotifyCh = n.leadershipCh
	c.HeartbeatTimeout = n.config.scaleTimeout(heartbeatTimeout)
	c.ElectionTimeout = n.config.scaleTimeout(electionTimeout)
	c.LeaderLeaseTimeout = n.config.scaleTimeout(leaderLeaseTimeout)
	c.CommitTimeout = n.config.CommitNotice
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.SnapshotThreshold = n.config.SnapshotThreshold
	c.SnapshotInterval = n.config.SnapshotInterval
	c.TrailingLogs = n.config.TrailingLogs
	c.NoLegacyTelemetry = true
	// A removed leader becomes a follower like every other removed node, instead of a process without raft.
	c.ShutdownOnRemove = false
	return c
}

func (n *Node) failStuckInstall() {
	n.fail(fmt.Errorf("node %s keeps installing snapshots without progress, because its log contradicts them; start it "+
		"again: the start drops that log", n.config.ID))
}

func closeTransport(t raft.Transport) {
	if closer, ok := t.(raft.WithClose); ok {
		_ = closer.Close() // the caller has a better error to report
	}
}

// electSoleVoter starts an election at once if this node is the only voter: it need not wait for a leader that cannot
// exist.
func (n *Node) electSoleVoter() {
	if voters := n.voterIDs(); len(voters) == 1 && voters[0] == raft.ServerID(n.config.ID) {
		n.startElection()
	}
}

// forceElection starts an election because the leader misjudges the state of this node, which only a new leadership
// corrects.
func (n *Node) forceElection() {
	select {
	case <-n.opened:
	case <-n.ctx.Done():
		return
	}
	if slices.Contains(n.voterIDs(), raft.ServerID(n.config.ID)) {
		n.startElection()
	}
}

// startElection makes raft a candidate at once, like a leadership transfer does. raft has no call for this, but accepts
// a TimeoutNow message from itself. An election is always safe.
func (n *Node) startElection() {
	self, address := raft.ServerID(n.config.ID), raft.ServerAddress(n.config.RaftAdvertise)
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: []byte(address),
	}}
	if err := n.transport.TimeoutNow(self, address, &request, &raft.TimeoutNowResponse{}); err != nil {
		n.log.Debug("cannot start an election at once", "error", err)
	}
}
