package load

import (
	"syscall"
	"time"
)

// sleep is precise to about 100 µs. time.Sleep wakes up to a millisecond late on Linux, because the runtime rounds its
// wait for the network up to milliseconds; at 1,000 iterations a second every latency would include that.
func sleep(d time.Duration) {
	wait := syscall.NsecToTimespec(int64(d))
	if syscall.Nanosleep(&wait, nil) != nil {
		time.Sleep(time.Microsecond) // interrupted by a signal: the caller looks at the clock again
	}
}
