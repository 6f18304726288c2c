package cluster

import (
	"context"
	"time"
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
func (a *autopilot) leaveWorseDisk(list []NodeHealth) (about string, err error) {
	better, reason := a.disk.findBetter(list)
	if reason == "" {
		a.worseDiskSince = time.Time{}
		return "", nil
	}
	if a.worseDiskSince.IsZero() {
		a.worseDiskSince = time.Now()
	}
	if a.disk.handedOver.Load() || time.Since(a.worseDiskSince) < a.timeouts.scale(handOverAfter) {
		return "", nil
	}
	a.log.Warn("the leadership is handed over to a member with a better disk", "to", better.ID, "reason", reason)
	ctx, cancel := context.WithTimeout(a.ctx, a.timeouts.scale(handOverTimeout))
	defer cancel()
	a.disk.handedOver.Store(true)
	err = a.elections.transferTo(ctx, better.Member)
	if err == nil || a.ctx.Err() != nil { // the end of the leadership may interrupt the wait for its transfer
		return "", nil
	}
	a.disk.handedOver.Store(false)
	return better.ID, err
}

// isBetterDisk orders disks that are good enough to lead.
func isBetterDisk(d, other DiskStatus) bool {
	if d.WriteMean != other.WriteMean {
		return d.WriteMean < other.WriteMean
	}
	return d.Free > other.Free
}
