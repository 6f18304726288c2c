package client

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of Linux that leave out the time in which the machine is suspended, and that count it.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspendedTime is by how much the clock that counts suspended time is ahead of the one that does not.
func suspendedTime() time.Duration {
	awake, known := readClock(clockMonotonic)
	all, alsoKnown := readClock(clockBoottime)
	if !known || !alsoKnown {
		return 0 // it was not known before either
	}
	return (all - awake).Truncate(suspensionStep)
}

// readClock asks the system itself: the time package knows no other clock, and programs that use this package should
// not need another module for it.
func readClock(id uintptr) (time.Duration, bool) {
	var at syscall.Timespec
	//nolint:gosec // the kernel writes a Timespec of this architecture
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&at)), 0)
	return time.Duration(at.Nano()), failed == 0
}
