package cluster

import (
	"fmt"
	"time"
)

// NodeGauges are the current sizes of a node, for metrics.
type NodeGauges struct {
	// QueuedCommands and QueuedBytes are the commands that wait for a log entry, and their size; 0 while the node does not
	// lead.
	QueuedCommands, QueuedBytes int
	// FirstIndex and LastIndex are the bounds of the log on this node's disk.
	FirstIndex, LastIndex uint64
	// Snapshots is the number of snapshots; the newest contains everything up to SnapshotIndex.
	Snapshots     int
	SnapshotIndex uint64
	// SnapshotBytes is the size of the newest snapshot.
	SnapshotBytes int64
	// Voters and Nonvoters count the members in raft's configuration. VotersAlive counts the voters that are alive
	// according to gossip, including this node.
	Voters, VotersAlive, Nonvoters int
	// PeersAlive and PeersLost count the other nodes known from gossip by whether they are alive.
	PeersAlive, PeersLost int
	// Unreachable is, for each server of raft's configuration, how long all status queries or all read confirmations of
	// this node to it have failed, whichever is longer; 0 for servers that answer.
	Unreachable map[string]time.Duration
	// ClockOffsets is, for each member that answered the last probe, how far its wall clock is ahead of civil time. Nil
	// while this node does not lead, and while there is no civil time.
	ClockOffsets map[string]time.Duration
	// UnrecordedTime is how much of this leadership is not in the ledger yet: by so much everything that ends by itself
	// would end later if this node crashed now. 0 while this node does not lead, and while nothing is timed.
	UnrecordedTime time.Duration
}

// Gauges returns the current sizes. It works in every state of the node; values that cannot be read any more are 0.
func (n *Node) Gauges() NodeGauges {
	m := NodeGauges{LastIndex: n.raft.LastIndex()}
	if l := n.leader.own.Load(); l != nil {
		m.QueuedCommands, m.QueuedBytes = l.commit.queue.queuedSize()
		m.ClockOffsets = l.civil.readClocks().offsets()
		if _, timed, _ := n.ledger.NextDue(); timed {
			m.UnrecordedTime = l.expiry.unrecordedTime()
		}
	}
	if first, err := n.logs.FirstIndex(); err == nil {
		m.FirstIndex = first
	}
	if list, err := n.parts.Snapshots.List(); err == nil && len(list) > 0 {
		m.Snapshots, m.SnapshotIndex, m.SnapshotBytes = len(list), list[0].Index, list[0].Size
	}
	m.countMembers(n.roster.Members())
	m.PeersAlive, m.PeersLost = n.directory.Count()
	m.Unreachable = map[string]time.Duration{}
	for id := range n.roster.ServerIDs() {
		asked, _ := n.poller.reachability.UnreachableFor(id)
		confirmed, _ := n.reads.reachability.UnreachableFor(id)
		m.Unreachable[id] = max(asked, confirmed)
	}
	return m
}

func (m *NodeGauges) countMembers(members []Member) {
	for _, member := range members {
		switch {
		case !member.Voter:
			m.Nonvoters++
		case member.Alive:
			m.Voters++
			m.VotersAlive++
		default:
			m.Voters++
		}
	}
}

func (q *proposalQueue) queuedSize() (commands, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.small.commands + q.large.commands, q.small.bytes + q.large.bytes
}

// SnapshotInfo describes one snapshot on this node's disk.
type SnapshotInfo struct {
	// ID is the name of the snapshot's folder.
	ID string
	// Index and Term are those of the last entry in the snapshot.
	Index, Term uint64
	Bytes       int64
}

// Snapshots lists the snapshots on this node's disk, newest first.
func (n *Node) Snapshots() ([]SnapshotInfo, error) {
	list, err := n.parts.Snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of node %s: %w", n.config.ID, err)
	}
	infos := make([]SnapshotInfo, len(list))
	for i, s := range list {
		infos[i] = SnapshotInfo{ID: s.ID, Index: s.Index, Term: s.Term, Bytes: s.Size}
	}
	return infos, nil
}
