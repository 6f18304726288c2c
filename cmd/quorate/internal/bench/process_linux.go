package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serverAttributes keep Ctrl-C in the terminal from the servers, which are still needed to clean up, and end them if
// this process is killed.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// clockTick is the unit of CPU times in /proc. It is the same on all architectures that Go supports.
const clockTick = time.Second / 100

// cpuTimeOf is zero for a process that has ended.
func cpuTimeOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may contain blanks. After it, user and system time are fields 12 and 13.
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	return sumTicks(fields[11:13])
}

func machineCPUTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // "cpu", user, nice, system, idle, wait for the disk, interrupts of two kinds
	if len(fields) < 8 {
		return 0
	}
	return sumTicks(fields[1:4]) + sumTicks(fields[6:8])
}

// sumTicks is zero if a field is not a number.
func sumTicks(fields []string) time.Duration {
	var ticks int64
	for _, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
