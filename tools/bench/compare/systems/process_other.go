//go:build !linux

package systems

import (
	"errors"
	"os/exec"
)

var errNotHere = errors.New("the comparison needs Linux: it reads /proc")

func startOwned(*exec.Cmd) error { return errNotHere }

// CheckDisk fails: this system is not supported.
func CheckDisk(string) error { return errNotHere }
