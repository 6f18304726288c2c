package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedTime is by how much the clock that counts suspended time is ahead of the one that does not.
func suspendedTime() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0 // it was not known before either
	}
	return time.Duration(all.Nano() - awake.Nano()).Truncate(suspensionStep)
}
