package servertest

import (
	"os/exec"
	"syscall"
)

// killWithParent lets the kernel kill a process when the process of the test ends, which without a cleanup happens when
// the tests take too long.
func killWithParent(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
