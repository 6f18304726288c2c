package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

const (
	// diskCheckInterval is how often the disk is looked at. What can be written meanwhile must fit into the reserve.
	diskCheckInterval = 2 * time.Second
	// minWrites tell nothing about a disk.
	minWrites = 3
	// mebibyte is the unit of what people read about space.
	mebibyte = 1 << 20
)

// DiskStatus is how the disk of a node does, as it was seen last.
type DiskStatus struct {
	// Free are the bytes that are left for the data folder; -1 if nobody can tell.
	Free int64
	// WriteMean is how long writing to the log, which ends with a sync, took on average in the last half minute.
	WriteMean time.Duration
	// Low is true while less than the reserve is free, Slow while the mean is above what is allowed.
	Low, Slow bool
}

// DiskStatus tells how this node's disk does.
func (n *Node) DiskStatus() DiskStatus {
	if d := n.diskStatus.Load(); d != nil {
		return *d
	}
	return DiskStatus{Free: -1}
}

// watchDisk looks at the disk from time to time, and says in the log when something has changed.
func (n *Node) watchDisk() {
	for {
		before, now := n.DiskStatus(), n.checkDisk()
		n.diskStatus.Store(&now)
		if before.Low != now.Low || before.Slow != now.Slow {
			n.logDiskChange(now)
		}
		if !sleepContext(n.ctx, diskCheckInterval) {
			return
		}
	}
}

func (n *Node) checkDisk() DiskStatus {
	d := DiskStatus{Free: -1}
	mean, writes := n.diskLatency.Mean()
	d.WriteMean = mean
	d.Slow = n.config.DiskSlow > 0 && mean > n.config.DiskSlow && writes >= minWrites
	if n.parts.FreeSpace == nil {
		return d
	}
	free, err := n.parts.FreeSpace()
	if err != nil {
		n.log.Debug("cannot tell how much space is left for the data folder", "error", err)
		return d
	}
	d.Free = free
	reserve := n.config.DiskReserve
	if n.DiskStatus().Low { // a little more than the reserve must come back, so that the answer does not change all the time
		reserve += reserve / 8
	}
	d.Low = free < reserve
	return d
}

func (n *Node) logDiskChange(d DiskStatus) {
	if warning := n.diskWarning(d); warning != "" {
		n.log.Warn("the disk needs help", "reason", warning)
		return
	}
	n.log.Info("the disk is well again", "free-mib", d.Free/mebibyte, "write-mean", d.WriteMean)
}

// diskWarning says what is wrong with the disk and what helps; empty if all is well.
func (n *Node) diskWarning(d DiskStatus) string {
	var warnings []string
	if d.Low {
		warnings = append(warnings, fmt.Sprintf("the data folder of node %s has %d MiB left, and the reserve is %d MiB (disk-reserve): "+
			"while it leads, it refuses what makes the ledger grow; make room", n.config.ID, d.Free/mebibyte, n.config.DiskReserve/mebibyte))
	}
	if d.Slow {
		warnings = append(warnings, fmt.Sprintf("writing to the log of node %s takes %v on average, more than %v (disk-slow): "+
			"look for a busy or failing disk", n.config.ID, d.WriteMean.Round(time.Millisecond), n.config.DiskSlow))
	}
	return strings.Join(warnings, "; ")
}

// checkDiskSpace is nil if the commands may be written although the disk is nearly full: what frees quota, keeps leases alive or
// ends them may, as long as anything can be written (docs/adr/0044).
func (n *Node) checkDiskSpace(commands []quota.Command) *Error {
	d := n.DiskStatus()
	if !d.Low || !slices.ContainsFunc(commands, growsLedger) {
		return nil
	}
	return newError(DiskFull, true, nil, "the disk of leader %s is nearly full (%d MiB left, the reserve is %d MiB): it takes releases and "+
		"renewals and nothing that makes the ledger grow; make room, or stop it so that another node leads",
		n.config.ID, d.Free/mebibyte, n.config.DiskReserve/mebibyte)
}

// growsLedger tells whether a command may add something to the ledger that stays.
func growsLedger(c quota.Command) bool {
	switch c.(type) {
	case quota.Allocate, quota.ApplyTrees, quota.SetLimits, quota.MoveNode, quota.RollBack:
		return true
	}
	return false
}
