//go:build !linux

package servertest

import "os/exec"

// killWithParent does nothing: other systems cannot kill a process when its parent ends.
func killWithParent(*exec.Cmd) {}
