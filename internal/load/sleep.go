package load

import (
	"context"
	"time"
)

const (
	// preciseSleep is how long before the instant the precise sleep begins, which cannot be interrupted.
	preciseSleep = 3 * time.Millisecond
)

// sleepUntil is false as soon as ctx has ended.
func sleepUntil(ctx context.Context, at time.Time) bool {
	if wait := time.Until(at) - preciseSleep; wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	for wait := time.Until(at); wait > 0; wait = time.Until(at) {
		if ctx.Err() != nil {
			return false
		}
		sleepShort(wait)
	}
	return ctx.Err() == nil
}

// sleepShort is a variable because the clock of a test does not know the precise sleep.
var sleepShort = sleep
