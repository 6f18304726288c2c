package systems

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of CPU times in /proc, which is the same on all architectures that Go supports.
const ticksPerSecond = 100

// Fields of /proc/PID/stat after the name of the program, which may contain blanks. After the user time follow the
// system time, and both times of children that have ended.
const (
	statParent = 1
	statUser   = 11
	statFields = 15
)

// CPUTimes are the CPU times of all processes at one moment.
type CPUTimes map[int]processTime

type processTime struct {
	parent int
	// own is the CPU time in ticks, ended that of children that have ended.
	own, ended uint64
}

// ReadCPUTimes reads /proc once for all processes.
func ReadCPUTimes() (CPUTimes, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	times := make(CPUTimes, len(folders))
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue // the process has just ended
		}
		pid, t, err := parseProcessTime(string(text))
		if err != nil {
			return nil, err
		}
		times[pid] = t
	}
	if _, found := times[os.Getpid()]; !found {
		return nil, errors.New("read the CPU times: /proc does not have this process")
	}
	return times, nil
}

// Client returns the CPU time of this process in seconds.
func (c CPUTimes) Client() float64 { return float64(c[os.Getpid()].own) / ticksPerSecond }

// Node returns the CPU time in seconds of a process with all its children, such as the backends of PostgreSQL.
func (c CPUTimes) Node(p *Process) float64 {
	pid := p.cmd.Process.Pid
	ticks := c[pid].own + c[pid].ended
	for _, t := range c {
		if t.parent == pid {
			ticks += t.own + t.ended
		}
	}
	return float64(ticks) / ticksPerSecond
}

func parseProcessTime(text string) (pid int, t processTime, err error) {
	number, rest, _ := strings.Cut(text, " ")
	fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
	if len(fields) < statFields {
		return 0, t, fmt.Errorf("read the CPU time of a process: %q", text)
	}
	var ticks [4]uint64
	for i := range ticks {
		ticks[i], err = strconv.ParseUint(fields[statUser+i], 10, 64)
		if err != nil {
			return 0, t, fmt.Errorf("read the CPU time of a process: %w", err)
		}
	}
	t.own, t.ended = ticks[0]+ticks[1], ticks[2]+ticks[3]
	pid, badPID := strconv.Atoi(number)
	t.parent, err = strconv.Atoi(fields[statParent])
	return pid, t, errors.Join(badPID, err)
}

// MachineTime is the CPU time of the whole machine since its start, in seconds.
type MachineTime struct {
	// Busy is without the time in which a CPU was idle or waited for a disk. Stolen is the part that the host gave to
	// other virtual machines.
	Busy, Stolen, Total float64
}

// Fields of the first line of /proc/stat.
const (
	machineIdle   = 3
	machineWait   = 4
	machineStolen = 7
	machineFields = 8 // those that follow are contained in others
)

// ReadMachineTime reads /proc/stat.
func ReadMachineTime() (MachineTime, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return MachineTime{}, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) <= machineFields {
		return MachineTime{}, fmt.Errorf("read the CPU time of the machine: %q", line)
	}
	var t MachineTime
	for i, field := range fields[1 : machineFields+1] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return MachineTime{}, fmt.Errorf("read the CPU time of the machine: %w", err)
		}
		seconds := n / ticksPerSecond
		t.Total += seconds
		switch i {
		case machineIdle, machineWait:
			continue
		case machineStolen:
			t.Stolen += seconds
		}
		t.Busy += seconds
	}
	return t, nil
}
