//go:build unix

package lease

import (
	"errors"
	"syscall"
)

// groupError is an error if no process of a group is left; the number of a group is negative, and 0 means no process.
func groupError(group int) error {
	if group != 0 && errors.Is(syscall.Kill(group, 0), syscall.ESRCH) {
		return errEnded
	}
	return nil
}
