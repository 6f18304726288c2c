package cluster

import (
	"cmp"
	"fmt"

	"github.com/hashicorp/go-hclog"
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
	latency := raftguard.NewDiskLatency(n.logSize)
	n.disk = newDiskMonitor(n.config, latency, p.FreeSpace, n.changes)
	checked := raftguard.NewChecksum(latency)
	if err := verifyLog(checked, p.Snapshots, n.log); err != nil {
		return false, err
	}
	stores := raftguard.NewFailStopStore(checked, p.Stable, n.fail)
	n.logs = raftguard.NewLogCache(stores, logCacheEntries, logCacheBytes)
	hasState, lost, err := checkRaftState(checked, stores, p)
	if err != nil {
		return false, err
	}
	n.join.stable, n.join.lost = stores, lost
	n.transport = raftguard.NewTransport(n.join.guard(p.Transport, hasState),
		raftguard.SilenceWhile(n.disk.isStalled), raftguard.ResolveAddresses(n.presentAddress),
		raftguard.PauseWhenIdle(n.logs.Appended))
	recorded, err := raftguard.NewRecordedSnapshots(p.Snapshots, stores)
	if err != nil {
		return false, err
	}
	monotonic := raftguard.NewMonotonicSnapshots(recorded, futileInstalls, n.forceElection, n.log)
	snapshots := raftguard.NewWatchdog(monotonic, n.logs, futileInstalls, n.failStuckInstall, n.log)
	n.raft, err = raft.NewRaft(raftConfig(n.config, n.elected), instrumentedFSM{n.ledger, n.config.Observer}, n.logs,
		stores, snapshots, n.transport)
	return hasState, err
}

// verifyLog drops a log left behind by a deposed leader (raft#697) and reads all entries once, so that raft starts from
// an intact log.
func verifyLog(logs raft.LogStore, snapshots raft.SnapshotStore, log hclog.Logger) error {
	if _, err := raftguard.RepairTail(logs, snapshots, log); err != nil {
		return err
	}
	list, err := snapshots.List()
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	var newest uint64
	if len(list) > 0 {
		newest = list[0].Index
	}
	return raftguard.VerifyLog(logs, newest)
}

// checkRaftState reports whether the node has state of its own to start from, and what it has lost. Raft is not started
// on the remains of lost state: with an old configuration among them the node could elect itself.
func checkRaftState(logs raft.LogStore, stable raft.StableStore, p Parts) (hasState bool, lost string, err error) {
	history, err := raftguard.CheckHistory(logs, stable, p.Snapshots)
	switch {
	case err != nil:
		return false, "", fmt.Errorf("check the raft state: %w", err)
	case history.Lost != "" && !history.TermOnly:
		return false, "", &raftguard.LostHistoryError{Reason: history.Lost}
	case history.Lost != "":
		return false, cmp.Or(p.Lost, history.Lost), nil
	case history.Empty:
		return false, p.Lost, nil
	}
	return true, "", nil
}

func raftConfig(config Config, elected chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(config.ID)
	c.Logger = raftguard.NewRepeatsLog(config.Logger.Named("raft"))
	c.NotifyCh = elected
	c.HeartbeatTimeout = config.scaleTimeout(heartbeatTimeout)
	c.ElectionTimeout = config.scaleTimeout(electionTimeout)
	c.LeaderLeaseTimeout = config.scaleTimeout(leaderLeaseTimeout)
	c.CommitTimeout = config.CommitNotice
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.SnapshotThreshold = config.SnapshotThreshold
	c.SnapshotInterval = config.SnapshotInterval
	c.TrailingLogs = config.TrailingLogs
	c.NoLegacyTelemetry = true
	// A removed leader becomes a follower like every other removed node, instead of a process without raft.
	c.ShutdownOnRemove = false
	return c
}

func (n *Node) failStuckInstall() {
	n.fail(fmt.Errorf("node %s keeps installing snapshots without progress, because its log contradicts them; start it "+
		"again: the start drops that log", n.config.ID))
}

// forceElection starts an election because the leader misjudges the state of this node, which only a new leadership
// corrects.
func (n *Node) forceElection() {
	select {
	case <-n.opened:
		n.elections.electIfVoter()
	case <-n.service.ctx.Done():
	}
}

func closeTransport(t raft.Transport) {
	if closer, ok := t.(raft.WithClose); ok {
		_ = closer.Close() // the caller has a better error to report
	}
}

// presentAddress returns where raft finds a server: at the address that it answered from recently, otherwise at the
// configured one. Unlike the configuration, which only a leader corrects, this works when a majority has moved. The
// address comes from gossip at first, but is used only once the server itself has answered there with its id, which a
// certificate proves (docs/adr/0119).
func (n *Node) presentAddress(id raft.ServerID, configured raft.ServerAddress) raft.ServerAddress {
	answer := n.answers.Find(string(id))
	if !answer.IsCurrent() || CheckAdvertisedAddr("RaftAddr", answer.RaftAddr) != nil {
		return configured
	}
	return raft.ServerAddress(answer.RaftAddr)
}
