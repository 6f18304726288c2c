//go:build unix && !linux

package bench

import (
	"syscall"
	"time"
)

// serverAttributes keep Ctrl-C in the terminal from the servers, which are still needed to clean up.
func serverAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// cpuTimeOf is not known here.
func cpuTimeOf(int) time.Duration { return 0 }

// machineCPUTime is not known here.
func machineCPUTime() time.Duration { return 0 }
