package cluster

import (
	"fmt"
	"time"
)

// NodeGauges are sizes of a node as they are now, for a page of metrics.
type NodeGauges struct {
	// QueuedCommands wait for an entry of the log, and take QueuedBytes; 0 while the node does not lead.
	QueuedCommands, QueuedBytes int
	// FirstIndex and LastIndex frame the log on this node's disk.
	FirstIndex, LastIndex uint64
	// Snapshots is how many there are; the newest holds everything up to SnapshotIndex.
	Snapshots     int
	SnapshotIndex uint64
	// SnapshotBytes is the size of the newest.
	SnapshotBytes int64
	// Voters and Nonvoters are members by raft's configuration, VotersAlive those voters that answer gossip, this one too.
	Voters, VotersAlive, Nonvoters int
	// PeersAlive and PeersLost are the other nodes that gossip has heard of, by whether they answer.
	PeersAlive, PeersLost int
	// Unreachable tells of each server of raft's configuration for how long all questions of this node to it have failed, how
	// it stands or whether it still leads, whichever is longer; 0 for those that answer.
	Unreachable map[string]time.Duration
}

// Gauges reads the sizes. It works in every state; what cannot be read any more is 0.
func (n *Node) Gauges() NodeGauges {
	m := NodeGauges{LastIndex: n.raft.LastIndex()}
	if l := n.leadership.Load(); l != nil {
		m.QueuedCommands, m.QueuedBytes = l.queue.queuedSize()
	}
	if first, err := n.logs.FirstIndex(); err == nil {
		m.FirstIndex = first
	}
	if list, err := n.parts.Snapshots.List(); err == nil && len(list) > 0 {
		m.Snapshots, m.SnapshotIndex, m.SnapshotBytes = len(list), list[0].Index, list[0].Size
	}
	m.countMembers(n.Members())
	m.PeersAlive, m.PeersLost = n.directory.countPeers()
	m.Unreachable = map[string]time.Duration{}
	for id := range n.serverIDs() {
		asked, _ := n.statusReachability.unreachableFor(id)
		confirmed, _ := n.readReachability.unreachableFor(id)
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

// queuedSize is how many commands wait, and their bytes.
func (q *proposalQueue) queuedSize() (commands, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.small.commands + q.large.commands, q.small.bytes + q.large.bytes
}

// countPeers is how many peers answer gossip and how many do not.
func (d *peerDirectory) countPeers() (alive, lost int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.peers {
		if p.Alive {
			alive++
		} else {
			lost++
		}
	}
	return alive, lost
}

// SnapshotInfo is one snapshot on this node's disk.
type SnapshotInfo struct {
	// ID is the name of its folder.
	ID string
	// Index and Term are those of the last entry in it.
	Index, Term uint64
	Bytes       int64
}

// Snapshots lists what is on this node's disk, newest first.
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
