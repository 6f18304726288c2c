package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quorate/quorate/client"
)

// remainsPause is kept between two looks whether a group of processes has ended.
const remainsPause = 20 * time.Millisecond

// findJob looks for a command before anybody waits for its lease.
func findJob(c *cli, args []string) (*exec.Cmd, error) {
	job := exec.Command(args[0], args[1:]...) //nolint:noctx // the watchdog ends it, and everything that it has started
	job.Stdin, job.Stdout, job.Stderr = c.in, c.out, c.talk
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := exec.LookPath(args[0]); err != nil { // also of a path, which Command takes as it is
		return nil, cannotStart(c, err)
	}
	return job, nil
}

// cannotStart says why, and ends as shells do.
func cannotStart(c *cli, err error) error {
	c.say("quorate: the command cannot be started: %v", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &statusError{code: exitNotFound}
	}
	return &statusError{code: exitNotExecutable}
}

// watchdog runs a command, and ends it with everything that it has started if its lease is lost.
type watchdog struct {
	*cli
	lease     *client.Lease
	signals   <-chan os.Signal
	killAfter time.Duration
}

func (w *watchdog) run(job *exec.Cmd, environment []string) error {
	job.Env = append(os.Environ(), environment...)
	defer lendTerminal(w.in, job)()
	if err := job.Start(); err != nil {
		return cannotStart(w.cli, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	revoked := w.lease.Revoked()
	for {
		select {
		case err := <-ended:
			return w.result(job, err)
		case s := <-w.signals:
			w.send(job, s)
		case <-revoked:
			revoked = nil
			w.say("the lease has to give way to %s: it ends in %s", w.lease.Allocation().GetRevokedBy(), lasting(time.Until(w.lease.Ends()).Milliseconds()))
		case <-w.lease.Context().Done():
			return w.stop(job, ended)
		}
	}
}

// send passes a signal on to the command and everything that it has started. Who has ended already gets none.
func (w *watchdog) send(job *exec.Cmd, s os.Signal) {
	err := syscall.Kill(-job.Process.Pid, syscall.Signal(signalNumber(s)))
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		w.say("quorate: %v could not be passed on: %v", s, err)
	}
}

// stop ends a command whose lease is lost: first it is asked to, then it is made to. Nothing that it has started is left.
func (w *watchdog) stop(job *exec.Cmd, ended <-chan error) error {
	cause := context.Cause(w.lease.Context())
	left := w.timeLeft()
	w.say("quorate: %s", lostText(cause, left))
	w.send(job, syscall.SIGTERM)
	patience := time.NewTimer(left)
	defer patience.Stop()
	look := time.NewTicker(remainsPause)
	defer look.Stop()
	for gone := false; ; {
		select {
		case <-ended:
			gone, ended = true, nil
		case s := <-w.signals:
			w.send(job, s)
		case <-look.C:
		case <-patience.C:
			w.send(job, syscall.SIGKILL)
			if !gone {
				<-ended
			}
			return &statusError{code: exitLeaseLost, ours: true}
		}
		if gone && errors.Is(syscall.Kill(-job.Process.Pid, 0), syscall.ESRCH) {
			return &statusError{code: exitLeaseLost, ours: true}
		}
	}
}

// timeLeft is how long a command may take to end. A lease that has to give way may end sooner than after --kill-after, and
// then somebody else holds what it held.
func (w *watchdog) timeLeft() time.Duration {
	return max(0, min(w.killAfter, time.Until(w.lease.Ends())))
}

// result passes on how the command ended.
func (w *watchdog) result(job *exec.Cmd, err error) error {
	failed := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failed):
		return err
	}
	if status, is := job.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return &statusError{code: exitSignal + int(status.Signal())}
	}
	return &statusError{code: job.ProcessState.ExitCode()}
}
