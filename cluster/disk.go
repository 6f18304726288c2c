package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/quota"
)

const (
	// diskCheckInterval is how often the disk is checked. The writes of one interval must fit into the reserve.
	diskCheckInterval = 2 * time.Second
	// minWrites is the number of writes below which their mean duration is not significant.
	minWrites = 3
	// hangingWrite is the duration of one write in progress from which the disk counts as slow without any other write.
	hangingWrite = 2 * time.Second
	// minStallCheck and maxStallCheck bound how often watchStall looks for a write that does not return.
	minStallCheck = 10 * time.Millisecond
	maxStallCheck = 250 * time.Millisecond
	// mebibyte is the unit used in messages.
	mebibyte = 1 << 20
)

type diskMonitor struct {
	self string
	// slow, stall and reserve are Config.DiskSlow, DiskStall and DiskReserve.
	slow, stall time.Duration
	reserve     int64
	log         hclog.Logger
	latency     *raftguard.DiskLatency
	freeSpace   func() (int64, error) // nil if unknown
	changes     *changeNotifier
	last        atomic.Pointer[DiskStatus]
	// handedOver is set once this node has handed the leadership over because of its disk, until that is good again.
	handedOver atomic.Bool
	// stallChanged receives a value when a write to the log began to hang, or has returned.
	stallChanged chan struct{}
}

func newDiskMonitor(c Config, latency *raftguard.DiskLatency, freeSpace func() (int64, error),
	changes *changeNotifier,
) *diskMonitor {
	return &diskMonitor{
		self: c.ID, slow: c.DiskSlow, stall: c.DiskStall, reserve: c.DiskReserve, log: c.Logger.Named("cluster"),
		latency: latency, freeSpace: freeSpace, changes: changes, stallChanged: make(chan struct{}, 1),
	}
}

// DiskStatus returns the last known state of this node's disk.
func (n *Node) DiskStatus() DiskStatus { return n.disk.status() }

func (d *diskMonitor) status() DiskStatus {
	if last := d.last.Load(); last != nil {
		return *last
	}
	return DiskStatus{Free: -1}
}

func (d *diskMonitor) watch(ctx context.Context) {
	for {
		before, now := d.status(), d.check()
		d.last.Store(&now)
		if !now.Low && !d.writesSlowly(now) {
			d.handedOver.Store(false)
		}
		if before.Low != now.Low || before.Slow != now.Slow {
			d.logChange(now)
		}
		if !sleepContext(ctx, diskCheckInterval) {
			return
		}
	}
}

func (d *diskMonitor) check() DiskStatus {
	now := DiskStatus{Free: -1}
	mean, writes := d.latency.Mean()
	now.WriteMean, now.Pending = mean, d.latency.Pending()
	now.Slow = d.slow > 0 && (now.Pending > max(d.slow, hangingWrite) ||
		mean > d.slow && (writes >= minWrites || d.status().Slow))
	if d.freeSpace == nil {
		return now
	}
	free, err := d.freeSpace()
	if err != nil {
		d.log.Debug("cannot tell how much space is left for the data folder", "error", err)
		return now
	}
	now.Free = free
	reserve := d.reserve
	// a little more than the reserve must come back, so that the answer does not change all the time
	if d.status().Low {
		reserve += reserve / 8
	}
	now.Low = free < reserve
	return now
}

func (d *diskMonitor) logChange(disk DiskStatus) {
	if warning := d.warning(disk); warning != "" {
		d.log.Warn("the disk has a problem", "reason", warning)
		return
	}
	d.log.Info("the disk has recovered", "free-mib", disk.Free/mebibyte, "write-mean", disk.WriteMean)
}

// warning also says how to fix it; empty if the disk is fine.
func (d *diskMonitor) warning(disk DiskStatus) string {
	var warnings []string
	if disk.Low {
		warnings = append(
			warnings, fmt.Sprintf("the data folder of node %s has %d MiB left, and the reserve is %d MiB "+
				"(disk-reserve): while it leads, it refuses commands that make the ledger grow; free disk "+
				"space", d.self, disk.Free/mebibyte, d.reserve/mebibyte))
	}
	if disk.Slow {
		warnings = append(warnings, d.slowWarning(disk))
	}
	return strings.Join(warnings, "; ")
}

func (d *diskMonitor) slowWarning(disk DiskStatus) string {
	if disk.Pending > max(d.slow, hangingWrite) {
		return fmt.Sprintf("a write to the log of node %s has not returned for %v: look for a failing disk", d.self,
			disk.Pending.Round(time.Second))
	}
	return fmt.Sprintf("writing to the log of node %s takes %v on average, more than %v "+
		"(disk-slow): look for a busy or failing disk", d.self, disk.WriteMean.Round(time.Millisecond),
		d.slow)
}

// checkSpace returns an error if the disk is nearly full and a command would make the ledger grow. Commands that
// release quota, renew leases or end them are accepted as long as anything can be written (docs/adr/0044).
func (d *diskMonitor) checkSpace(commands []quota.Command) *Error {
	now := d.status()
	if !now.Low || !slices.ContainsFunc(commands, growsLedger) {
		return nil
	}
	return newError(DiskFull, true, nil, "the disk of leader %s is nearly full (%d MiB left, the reserve "+
		"is %d MiB): it "+
		"accepts releases and renewals, but no commands that make the ledger grow; free disk space, or stop it so that "+
		"another node leads",
		d.self, now.Free/mebibyte, d.reserve/mebibyte)
}

func growsLedger(c quota.Command) bool { return quota.FactsOf(c).GrowsLedger }

// checkRestoreSpace is nil if the free space is unknown.
func (d *diskMonitor) checkRestoreSpace(needed int64) *Error {
	now := d.check()
	if now.Free < 0 || now.Free-needed >= d.reserve {
		return nil
	}
	return newError(DiskFull, true, nil, "the data folder of leader %s has %d MiB left, and this restore "+
		"needs up to %d "+
		"MiB more for a while, beside the reserve of %d MiB (disk-reserve): a backup is kept as a file, in "+
		"the log and in a "+
		"snapshot; free disk space; nothing was changed",
		d.self, now.Free/mebibyte, (needed+mebibyte-1)/mebibyte, d.reserve/mebibyte)
}

// findBetter returns the healthy voter with the best disk and why it should lead; no reason if this node's disk is
// good enough, or no other one is better. A stalled disk is not compared: see isStalled.
func (d *diskMonitor) findBetter(list []NodeHealth) (best NodeHealth, reason string) {
	own := d.status()
	if own.Pending > hangingWrite {
		return best, ""
	}
	for _, h := range votersOf(list) {
		if h.ID == d.self || !h.Healthy || h.ClockProblem != "" {
			continue
		}
		found := d.compare(own, h.Status.Disk)
		if found == "" || reason != "" && !isBetterDisk(h.Status.Disk, best.Status.Disk) {
			continue
		}
		best, reason = h, found
	}
	return best, reason
}

// compare is empty if other should not lead.
func (d *diskMonitor) compare(own, other DiskStatus) string {
	if other.Free <= 0 || other.Low || other.Slow {
		return ""
	}
	switch {
	case own.Low:
		return "the disk of this node is nearly full"
	case d.writesSlowly(own) && other.WriteMean > 0 && own.WriteMean > slowerFactor*other.WriteMean:
		return "writes to the disk of this node take several times as long"
	}
	return ""
}

// writesSlowly reports whether writes take long enough that another leader would be noticed.
func (d *diskMonitor) writesSlowly(disk DiskStatus) bool {
	return d.slow > 0 && disk.WriteMean > d.slow/slowerFactor
}

// isStalled reports whether a write to the log has been in progress for longer than DiskStall. raft's main loop
// waits for the write, so it can neither lead nor follow. Its heartbeats would go on; the transport holds them back, so
// that the followers elect another leader (docs/adr/0118).
func (d *diskMonitor) isStalled() bool {
	return d.stall > 0 && d.latency.Pending() > d.stall
}

// watchStall notifies the leadershipWatcher when a write to the log begins to hang, and when it has returned.
func (d *diskMonitor) watchStall(ctx context.Context) {
	interval := min(max(d.stall/20, minStallCheck), maxStallCheck)
	stalled := false
	for sleepContext(ctx, interval) {
		if now := d.isStalled(); now == stalled {
			continue
		}
		stalled = !stalled
		if stalled {
			d.log.Error("a write to the log does not return", "pending", d.latency.Pending(), "disk-stall",
				d.stall)
		} else {
			d.log.Warn("the write to the log that did not return has ended")
		}
		d.changes.notifyAll()
		select {
		case d.stallChanged <- struct{}{}:
		default:
		}
	}
}
