package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// slowerFactor is how many times as long the writes of a leader take as those of a member that should lead instead,
	// and a quarter of DiskSlow is the mean below which they are fast enough.
	slowerFactor = 4
	// handOverAfter is how long a disk must be worse without interruption.
	handOverAfter = 10 * time.Second
	// handOverTimeout bounds a transfer of the leadership because of a disk.
	handOverTimeout = 10 * time.Second
)

// leaveWorseDisk hands the leadership over to a voter whose disk is clearly better: this one is nearly full and the
// other is not, or writes here take several times as long. A member does so once until its own disk is good again, so
// that leaders do not hand over in a circle when all disks are bad (docs/adr/0120).
func (l *leadership) leaveWorseDisk(list []NodeHealth) (about string, err error) {
	n := l.node
	better, reason := n.findBetterDisk(list)
	if reason == "" {
		l.worseDiskSince = time.Time{}
		return "", nil
	}
	if l.worseDiskSince.IsZero() {
		l.worseDiskSince = time.Now()
	}
	if n.handedOver.Load() || time.Since(l.worseDiskSince) < n.config.scaleTimeout(handOverAfter) {
		return "", nil
	}
	n.log.Warn("the leadership is handed over to a member with a better disk", "to", better.ID, "reason", reason)
	ctx, cancel := context.WithTimeout(l.ctx, n.config.scaleTimeout(handOverTimeout))
	defer cancel()
	n.handedOver.Store(true)
	err = l.transferTo(ctx, better.Member)
	if err == nil || l.ctx.Err() != nil { // the end of the leadership may interrupt the wait for its transfer
		return "", nil
	}
	n.handedOver.Store(false)
	return better.ID, err
}

// transferTo transfers the leadership to a voter.
func (l *leadership) transferTo(ctx context.Context, m Member) error {
	l.node.proposeLastTick(ctx)
	future := l.node.raft.LeadershipTransferToServer(raft.ServerID(m.ID), raft.ServerAddress(m.RaftAddr))
	return l.transferError(awaitFuture(ctx, future))
}

// findBetterDisk returns the healthy voter with the best disk and why it should lead; no reason if this node's disk is
// good enough, or no other one is better. A stalled disk is not compared: see isDiskStalled.
func (n *Node) findBetterDisk(list []NodeHealth) (best NodeHealth, reason string) {
	own := n.DiskStatus()
	if own.Pending > hangingWrite {
		return best, ""
	}
	for _, h := range votersOf(list) {
		if h.ID == n.config.ID || !h.Healthy || h.ClockProblem != "" {
			continue
		}
		found := n.compareDisks(own, h.Status.Disk)
		if found == "" || reason != "" && !h.Status.Disk.isBetterThan(best.Status.Disk) {
			continue
		}
		best, reason = h, found
	}
	return best, reason
}

// compareDisks says why a member with another disk should lead; empty if it should not.
func (n *Node) compareDisks(own, other DiskStatus) string {
	if other.Free <= 0 || other.Low || other.Slow {
		return ""
	}
	switch {
	case own.Low:
		return "the disk of this node is nearly full"
	case n.writesSlowly(own) && other.WriteMean > 0 && own.WriteMean > slowerFactor*other.WriteMean:
		return "writes to the disk of this node take several times as long"
	}
	return ""
}

// writesSlowly reports whether writes take long enough that another leader would be noticed.
func (n *Node) writesSlowly(d DiskStatus) bool {
	return n.config.DiskSlow > 0 && d.WriteMean > n.config.DiskSlow/slowerFactor
}

// isBetterThan orders disks that are good enough to lead.
func (d DiskStatus) isBetterThan(other DiskStatus) bool {
	if d.WriteMean != other.WriteMean {
		return d.WriteMean < other.WriteMean
	}
	return d.Free > other.Free
}
