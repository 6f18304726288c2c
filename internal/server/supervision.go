package server

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
)

// supervision tells the process manager that started this process (systemd, by the protocol of sd_notify) that the
// node serves, that it still makes progress, and that it stops. It does nothing in a process without
// supervision.
type supervision struct {
	status func() cluster.NodeStatus
	notify func(state string) (sent bool, err error)
	log    hclog.Logger

	applied, committed uint64 // at the last check
	stalled            bool   // at the last check
}

func newSupervision(status func() cluster.NodeStatus, log hclog.Logger) *supervision {
	return &supervision{
		status: status, log: log,
		notify: func(state string) (bool, error) { return daemon.SdNotify(false, state) },
	}
}

// serving says that the node answers calls. It may have no leader yet: the unit of the first of three members would
// otherwise not be started before the second.
func (v *supervision) serving() { v.send(daemon.SdNotifyReady) }

func (v *supervision) stopping() { v.send(daemon.SdNotifyStopping) }

// watch reports progress, twice within the interval of the watchdog, until ctx ends. It reports nothing while entries
// that are committed are not applied, and blocks while the lock of the ledger is held: then the process manager
// restarts the process.
func (v *supervision) watch(ctx context.Context) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		v.log.Warn("the watchdog of the process manager is not used", "error", err)
	}
	if err != nil || interval == 0 {
		return
	}
	ticker := time.NewTicker(interval / 2)
	defer ticker.Stop()
	for {
		if v.progresses() {
			v.send(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// progresses reports whether what was committed at the last check has been applied, or a part of it.
func (v *supervision) progresses() bool {
	status := v.status()
	stalled := status.AppliedIndex < v.committed && status.AppliedIndex <= v.applied
	if stalled && !v.stalled {
		v.log.Error("committed entries are not applied: the process manager restarts this process if that lasts",
			"applied", status.AppliedIndex, "committed", status.CommitIndex)
	}
	v.applied, v.committed, v.stalled = status.AppliedIndex, status.CommitIndex, stalled
	return !stalled
}

func (v *supervision) send(state string) {
	if _, err := v.notify(state); err != nil {
		v.log.Warn("the process manager was not notified", "state", state, "error", err)
	}
}
