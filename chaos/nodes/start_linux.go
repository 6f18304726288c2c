package nodes

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// startProcess starts a process that is killed when this one ends. The kernel kills it when the thread that started it
// ends, so one thread that never ends starts all processes. place, if not nil, moves that thread to a namespace for the
// start.
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
	original, err := thisNamespace()
	if err != nil {
		return err
	}
	if err := place(); err != nil {
		return errors.Join(err, original.closeFile())
	}
	return errors.Join(cmd.Start(), original.enterThread(), original.closeFile())
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
