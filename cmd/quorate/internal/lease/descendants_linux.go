package lease

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// descendants finds the processes that a job has started, in whatever session and group they are.
//
// This process is made the subreaper of the job: a process whose parent has ended becomes its child and not that of
// init. So everything that the job has started is below this process, at any time.
type descendants struct {
	// before are the children that this process had before the job.
	before map[int]bool
}

// newDescendants must be called before the job is started.
func newDescendants() *descendants {
	d := &descendants{before: map[int]bool{}}
	// Without it, which no supported kernel refuses, only the process group of the job is known.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	for _, p := range runningProcesses() {
		if p.parent == os.Getpid() {
			d.before[p.pid] = true
		}
	}
	return d
}

// dieWithParent makes the kernel kill the job when this process ends before it, however that happens. The kernel
// means the thread that has started the job, so the caller must be locked to one that stays.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// running returns the descendants that have not ended, apart from the job itself.
func (d *descendants) running(job int) []int {
	children := map[int][]process{}
	for _, p := range runningProcesses() {
		children[p.parent] = append(children[p.parent], p)
	}
	var list []int
	next := children[os.Getpid()]
	for len(next) > 0 {
		p := next[0]
		next = next[1:]
		if d.before[p.pid] {
			continue
		}
		next = append(next, children[p.pid]...)
		switch {
		case p.hasEnded && p.parent == os.Getpid() && p.pid != job:
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil) // it was left to this process
		case !p.hasEnded && p.pid != job:
			list = append(list, p.pid)
		}
	}
	return list
}

type process struct {
	pid, parent int
	hasEnded    bool
}

func runningProcesses() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		fields, err := statOf(pid)
		if err != nil {
			continue
		}
		parent, err := strconv.Atoi(fields[parentField])
		if err != nil {
			continue
		}
		list = append(list, process{pid, parent, fields[stateField] == "Z" || fields[stateField] == "X"})
	}
	return list
}

// The fields that statOf returns.
const stateField, parentField, startField = 0, 1, 19

// statOf returns the fields of /proc/PID/stat after the name of the process.
func statOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, errEnded
	}
	// The second field is the name in parentheses, which may contain blanks and parentheses itself.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= startField {
		return nil, errEnded
	}
	return fields, nil
}
