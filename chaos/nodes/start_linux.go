package nodes

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// startProcess starts a process that dies with this one. The kernel ties that to the thread that started it, so one thread,
// which never ends, starts all of them. place, if not nil, moves that thread for as long as that takes.
func startProcess(cmd *exec.Cmd, place func() error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	starterThread() <- func() { done <- startInNamespace(cmd, place) }
	return <-done
}

func startInNamespace(cmd *exec.Cmd, place func() error) error {
	if place == nil {
		return cmd.Start()
	}
	home, err := thisNamespace()
	if err != nil {
		return err
	}
	if err := place(); err != nil {
		return errors.Join(err, home.closeFile())
	}
	return errors.Join(cmd.Start(), home.enterThread(), home.closeFile())
}

var starterThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and never unlock it
		for do := range work {
			do()
		}
	}()
	return work
})
