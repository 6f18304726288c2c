//go:build unix

package lease

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// killPatience is how long a killed process may take to end.
const killPatience = 2 * time.Second

// groupPollInterval is the time between two checks whether a process group has ended.
const groupPollInterval = 20 * time.Millisecond

// lookUpJob finds the command before the wait for its lease, so that a typo fails at once.
func lookUpJob(c *cli.Env, args []string) (*exec.Cmd, error) {
	job := exec.Command(args[0], args[1:]...) //nolint:noctx // the watchdog ends it, and everything that it has started
	job.Stdin, job.Stdout, job.Stderr = c.In, c.Out, c.ErrOut
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := exec.LookPath(args[0]); err != nil { // exec.Command does not check a path
		return nil, cannotStart(c, err)
	}
	return job, nil
}

func cannotStart(c *cli.Env, err error) error {
	c.Messagef("quorate: the command cannot be started: %v", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &cli.ExitError{Code: exitNotFound}
	}
	return &cli.ExitError{Code: exitNotExecutable}
}

// jobGuard runs a command in a process group, and ends the group and every other descendant if the lease is lost.
type jobGuard struct {
	*cli.Env
	lease     *client.Lease
	signals   <-chan os.Signal
	killAfter time.Duration
	others    *descendants
}

func (w *jobGuard) runJob(job *exec.Cmd, environment []string) error {
	runtime.LockOSThread() // the job ends with the thread that has started it
	defer runtime.UnlockOSThread()
	w.others = newDescendants()
	job.Env = append(os.Environ(), environment...)
	dieWithParent(job.SysProcAttr)
	defer lendTerminal(w.In, job)()
	if err := job.Start(); err != nil {
		return cannotStart(w.Env, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	revoked := w.lease.Revoked()
	for {
		select {
		case err := <-ended:
			w.endLeftovers(job)
			return w.jobResult(job, err)
		case s := <-w.signals:
			w.forwardSignal(job, s)
		case <-revoked:
			revoked = nil
			w.Messagef("the lease is revoked by %s: it ends in %s%s", cli.RevokerText(w.lease.Allocation()),
				cli.RoundSpan(time.Until(w.lease.Ends()).Milliseconds()), w.Units.ReasonClause(w.lease.Allocation()))
		case <-w.lease.Context().Done():
			return w.stopJob(job, ended)
		}
	}
}

// forwardSignal takes a group that has ended as success.
func (w *jobGuard) forwardSignal(job *exec.Cmd, s os.Signal) {
	err := syscall.Kill(-job.Process.Pid, syscall.Signal(signalNumber(s)))
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		w.Messagef("quorate: %v could not be forwarded: %v", s, err)
	}
}

// signalAll sends a signal to the process group of the command, and to the descendants that have left it.
func (w *jobGuard) signalAll(job *exec.Cmd, s syscall.Signal) {
	w.forwardSignal(job, s)
	for _, pid := range w.others.running(job.Process.Pid) {
		if group, err := syscall.Getpgid(pid); err == nil && group != job.Process.Pid {
			_ = syscall.Kill(pid, s) // one that has ended is not an error
		}
	}
}

// isGone is for a command that has ended itself: no process of its group and no other descendant is left.
func (w *jobGuard) isGone(job *exec.Cmd) bool {
	return len(w.others.running(job.Process.Pid)) == 0 &&
		errors.Is(syscall.Kill(-job.Process.Pid, 0), syscall.ESRCH)
}

// stopJob ends the command and its descendants after the lease was lost: SIGTERM first, SIGKILL when the time is over.
// It returns when none is left.
func (w *jobGuard) stopJob(job *exec.Cmd, ended <-chan error) error {
	cause := context.Cause(w.lease.Context())
	left := w.timeLeft()
	w.Messagef("quorate: %s", lostText(cause, left))
	w.signalAll(job, syscall.SIGTERM)
	w.awaitEnd(job, ended, left)
	return &cli.ExitError{Code: cli.ExitLeaseLost, Ours: true}
}

// endLeftovers ends what the command has left behind: it must not use what the lease holds any longer.
func (w *jobGuard) endLeftovers(job *exec.Cmd) {
	for range 5 { // what is about to end, such as the other end of a pipe, is not worth a message
		if w.isGone(job) {
			return
		}
		time.Sleep(groupPollInterval)
	}
	w.Messagef("quorate: the command has ended; what it has left behind has %s to end",
		cli.RoundSpan(w.timeLeft().Milliseconds()))
	w.signalAll(job, syscall.SIGTERM)
	w.awaitEnd(job, nil, w.timeLeft())
}

// awaitEnd waits until the command and its descendants have ended, and kills them when the time is over. A nil channel
// says that the command has ended.
func (w *jobGuard) awaitEnd(job *exec.Cmd, ended <-chan error, left time.Duration) {
	patience := time.NewTimer(left)
	defer patience.Stop()
	look := time.NewTicker(groupPollInterval)
	defer look.Stop()
	var lastChance <-chan time.Time
	for {
		select {
		case <-ended:
			ended = nil
		case s := <-w.signals:
			w.forwardSignal(job, s)
		case <-look.C:
		case <-patience.C:
			lastChance = time.After(killPatience)
		case <-lastChance:
			if ended == nil {
				return // what is left cannot be killed: it belongs to another user, or hangs in the kernel
			}
		}
		switch {
		case ended == nil && w.isGone(job):
			return
		case lastChance != nil: // again, because it may start others until it has ended
			w.signalAll(job, syscall.SIGKILL)
		}
	}
}

// timeLeft is how long the command may take to end: --kill-after, or less if the lease ends sooner, as a revoked one
// may. After that another holder may have the items.
func (w *jobGuard) timeLeft() time.Duration {
	return max(0, min(w.killAfter, time.Until(w.lease.Ends())))
}

func (w *jobGuard) jobResult(job *exec.Cmd, err error) error {
	failed := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failed):
		return err
	}
	if status, ok := job.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &cli.ExitError{Code: exitSignal + int(status.Signal())}
	}
	return &cli.ExitError{Code: job.ProcessState.ExitCode()}
}

// lendTerminal makes the process group of the command the foreground group of our terminal, if we have one: another
// group cannot read from it. Ctrl-C then reaches the command directly. Ctrl-Z is ignored, because no shell could
// continue the command. The returned function takes the terminal back.
func lendTerminal(in io.Reader, job *exec.Cmd) (takeBack func()) {
	file, isFile := in.(*os.File)
	if !isFile {
		return func() {}
	}
	terminal := int(file.Fd())
	ours := unix.Getpgrp()
	if front, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err != nil || front != ours {
		return func() {}
	}
	signal.Ignore(syscall.SIGTSTP) // inherited
	job.SysProcAttr.Foreground, job.SysProcAttr.Ctty = true, terminal
	return func() {
		signal.Ignore(syscall.SIGTTOU) // otherwise taking it back would stop this process
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, ours)
		signal.Reset(syscall.SIGTTOU, syscall.SIGTSTP)
	}
}
