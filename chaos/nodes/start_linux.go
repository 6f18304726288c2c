package nodes

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// start starts a process that dies with this one. The kernel ties that to the thread that started it, so one thread,
// which never ends, starts all of them. place, if not nil, moves that thread for as long as that takes.
func start(cmd *exec.Cmd, place func() error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	starter() <- func() { done <- startAt(cmd, place) }
	return <-done
}

func startAt(cmd *exec.Cmd, place func() error) error {
	if place == nil {
		return cmd.Start()
	}
	home, err := thisNamespace()
	if err != nil {
		return err
	}
	if err := place(); err != nil {
		return errors.Join(err, home.close())
	}
	return errors.Join(cmd.Start(), home.enter(), home.close())
}

var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and never unlock it
		for do := range work {
			do()
		}
	}()
	return work
})
