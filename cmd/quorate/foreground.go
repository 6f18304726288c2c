package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// lendTerminal gives a command the terminal that we read from, if we have one: a process group of its own could not read
// from it otherwise. Then Ctrl-C reaches the command without us. Ctrl-Z does nothing, because nobody could wake it up again.
// The answer takes the terminal back.
func lendTerminal(in io.Reader, job *exec.Cmd) (takeBack func()) {
	file, is := in.(*os.File)
	if !is {
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
		signal.Ignore(syscall.SIGTTOU) // or taking it back would stop us
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, ours)
		signal.Reset(syscall.SIGTTOU, syscall.SIGTSTP)
	}
}
