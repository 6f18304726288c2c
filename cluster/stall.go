package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// minStallCheck and maxStallCheck bound how often watchStall looks for a write that does not return.
const (
	minStallCheck = 10 * time.Millisecond
	maxStallCheck = 250 * time.Millisecond
)

// isDiskStalled reports whether a write to the log has been in progress for longer than DiskStall. raft's main loop
// waits for the write, so it can neither lead nor follow. Its heartbeats would go on; the transport holds them back, so
// that the followers elect another leader (docs/adr/0118).
func (n *Node) isDiskStalled() bool {
	return n.config.DiskStall > 0 && n.diskLatency.Pending() > n.config.DiskStall
}

// watchStall notifies watchLeadership when a write to the log begins to hang, and when it has returned.
func (n *Node) watchStall() {
	interval := min(max(n.config.DiskStall/20, minStallCheck), maxStallCheck)
	stalled := false
	for sleepContext(n.ctx, interval) {
		if now := n.isDiskStalled(); now == stalled {
			continue
		}
		stalled = !stalled
		if stalled {
			n.log.Error("a write to the log does not return", "pending", n.diskLatency.Pending(), "disk-stall",
				n.config.DiskStall)
		} else {
			n.log.Warn("the write to the log that did not return has ended")
		}
		n.changes.notifyAll()
		select {
		case n.stallChanged <- struct{}{}:
		default:
		}
	}
}

// followStall suspends the leadership while the disk is stalled. Once the write has returned, it begins a new one if
// raft still leads, as the only voter always does. It returns the current leadership.
func (n *Node) followStall(current *leadership) *leadership {
	if current == nil {
		return nil
	}
	if n.isDiskStalled() {
		n.suspendLeadership(current)
		return current
	}
	if current.ctx.Err() == nil {
		return current
	}
	n.endLeadership(current)
	if n.raft.State() != raft.Leader || n.fault() != nil {
		return nil
	}
	return n.beginLeadership()
}

// suspendLeadership makes the node refuse leader operations at once. Unlike endLeadership it does not wait for the
// tasks of the leadership, because those that wait for raft end only when the write returns, and it answers the callers
// whose commands raft has.
func (n *Node) suspendLeadership(l *leadership) {
	if l.ctx.Err() != nil {
		return
	}
	n.leadership.CompareAndSwap(l, nil)
	l.cancel()
	l.queue.close()
	close(l.suspended)
	n.changes.notifyAll()
	n.log.Error("this node stops to act as leader, because its disk does not answer", "term", l.term)
}

// leaderNamedByPeers returns the leader that the other members name while raft on this node still takes itself for the
// leader, because it waits for a write.
func (n *Node) leaderNamedByPeers() (Member, bool) {
	if !n.isDiskStalled() {
		return Member{}, false
	}
	term, named := n.raft.CurrentTerm(), ""
	servers := n.servers()
	for _, s := range servers {
		a := n.answers.findAnswer(string(s.ID))
		if a.isCurrent() && a.Term > term && a.Leader != "" && a.Leader != n.config.ID {
			term, named = a.Term, a.Leader
		}
	}
	for _, s := range servers {
		if string(s.ID) == named {
			return n.memberOf(s), true
		}
	}
	return Member{}, false
}
