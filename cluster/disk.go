package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/quota"
)

const (
	// diskCheckInterval is how often the disk is checked. The writes of one interval must fit into the reserve.
	diskCheckInterval = 2 * time.Second
	// minWrites is the number of writes below which their mean duration is not significant.
	minWrites = 3
	// hangingWrite is the duration of one write in progress from which the disk counts as slow without any other write.
	hangingWrite = 2 * time.Second
	// mebibyte is the unit used in messages.
	mebibyte = 1 << 20
)

// DiskStatus is the state of a node's disk when it was last checked.
type DiskStatus struct {
	// Free is the number of bytes available for the data folder; -1 if unknown.
	Free int64
	// WriteMean is the mean duration of log writes, each of which ends with a sync, in the last half minute.
	WriteMean time.Duration
	// Pending is how long the write in progress has taken; 0 if there is none.
	Pending time.Duration
	// Low is true while less than the reserve is free, Slow while the mean is above the limit.
	Low, Slow bool
}

// DiskStatus returns the last known state of this node's disk.
func (n *Node) DiskStatus() DiskStatus {
	if d := n.diskStatus.Load(); d != nil {
		return *d
	}
	return DiskStatus{Free: -1}
}

// watchDisk checks the disk periodically and logs changes.
func (n *Node) watchDisk() {
	for {
		before, now := n.DiskStatus(), n.checkDisk()
		n.diskStatus.Store(&now)
		if !now.Low && !n.writesSlowly(now) {
			n.handedOver.Store(false)
		}
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
	d.WriteMean, d.Pending = mean, n.diskLatency.Pending()
	d.Slow = n.config.DiskSlow > 0 && (d.Pending > max(n.config.DiskSlow, hangingWrite) ||
		mean > n.config.DiskSlow && (writes >= minWrites || n.DiskStatus().Slow))
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
	// a little more than the reserve must come back, so that the answer does not change all the time
	if n.DiskStatus().Low {
		reserve += reserve / 8
	}
	d.Low = free < reserve
	return d
}

func (n *Node) logDiskChange(d DiskStatus) {
	if warning := n.diskWarning(d); warning != "" {
		n.log.Warn("the disk has a problem", "reason", warning)
		return
	}
	n.log.Info("the disk has recovered", "free-mib", d.Free/mebibyte, "write-mean", d.WriteMean)
}

// diskWarning describes what is wrong with the disk and how to fix it; empty if it is fine.
func (n *Node) diskWarning(d DiskStatus) string {
	var warnings []string
	if d.Low {
		warnings = append(
			warnings, fmt.Sprintf("the data folder of node %s has %d MiB left, and the reserve is %d MiB "+
				"(disk-reserve): while it leads, it refuses commands that make the ledger grow; free disk "+
				"space", n.config.ID, d.Free/mebibyte, n.config.DiskReserve/mebibyte))
	}
	if d.Slow {
		warnings = append(warnings, n.slowWarning(d))
	}
	return strings.Join(warnings, "; ")
}

func (n *Node) slowWarning(d DiskStatus) string {
	if d.Pending > max(n.config.DiskSlow, hangingWrite) {
		return fmt.Sprintf("a write to the log of node %s has not returned for %v: look for a failing disk", n.config.ID,
			d.Pending.Round(time.Second))
	}
	return fmt.Sprintf("writing to the log of node %s takes %v on average, more than %v "+
		"(disk-slow): look for a busy or failing disk", n.config.ID, d.WriteMean.Round(time.Millisecond),
		n.config.DiskSlow)
}

// checkDiskSpace returns an error if the disk is nearly full and a command would make the ledger grow. Commands that
// release quota, renew leases or end them are accepted as long as anything can be written (docs/adr/0044).
func (n *Node) checkDiskSpace(commands []quota.Command) *Error {
	d := n.DiskStatus()
	if !d.Low || !slices.ContainsFunc(commands, growsLedger) {
		return nil
	}
	return newError(DiskFull, true, nil, "the disk of leader %s is nearly full (%d MiB left, the reserve "+
		"is %d MiB): it "+
		"accepts releases and renewals, but no commands that make the ledger grow; free disk space, or stop it so that "+
		"another node leads",
		n.config.ID, d.Free/mebibyte, n.config.DiskReserve/mebibyte)
}

// growsLedger reports whether a command may add data to the ledger that stays.
func growsLedger(c quota.Command) bool {
	switch c.(type) {
	case quota.Allocate, quota.ApplyTrees, quota.SetLimits, quota.MoveNode, quota.RollBack:
		return true
	}
	return false
}
