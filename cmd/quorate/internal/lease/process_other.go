//go:build unix && !linux

package lease

import (
	"errors"
	"syscall"
)

// descendants are the processes of a job outside of its process group, which this system has no simple way to find.
type descendants struct{}

func newDescendants() *descendants { return &descendants{} }

func (*descendants) running(int) []int { return nil }

func dieWithParent(*syscall.SysProcAttr) {}

var errEnded = errors.New("there is no such process")

// startOf returns an error if a process, or for a negative number a process group, has ended. This system has no simple
// way to tell a process from a later one with the same number.
func startOf(pid int) (string, error) {
	if pid <= 0 {
		return "", groupError(pid)
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return "", errEnded
	}
	return "", nil
}
