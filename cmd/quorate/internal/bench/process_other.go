//go:build unix && !linux

package bench

import (
	"syscall"
	"time"
)

// serverAttributes keep Ctrl-C in the terminal from the servers, which are still needed to clean up.
func serverAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// cpuTimeOf is always zero: this system does not tell it simply.
func cpuTimeOf(int) time.Duration { return 0 }

// machineCPUTime is always zero, as cpuTimeOf.
func machineCPUTime() time.Duration { return 0 }
