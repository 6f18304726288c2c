package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeaseRunAtATerminal: a command under a lease can read from the terminal, and Ctrl-C ends it.
func TestLeaseRunAtATerminal(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	keyboard, screen := openTerminal(t)
	command := exec.Command(binary, "lease", "run", "--server", f.baseURL(), "--resource", "aws-account",
		"--id", "typed", "--",
		"sh", "-c", `echo ready; read line; echo "got $line"; sleep 600`)
	command.Stdin, command.SysProcAttr = screen, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := startCommand(t, command)
	awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "ready") })
	if _, err := keyboard.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "got hello") })
	if _, err := keyboard.WriteString("\x1a"); err != nil { // Ctrl-Z is ignored
		t.Fatal(err)
	}
	awaitTrue(t, func() bool { // Ctrl-C ends it, but a shell that is about to start a command may lose one
		_, err := keyboard.WriteString("\x03")
		return err != nil || !p.isRunning()
	})
	if end := p.awaitEnd(t); end.code != 130 {
		t.Errorf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
	}
	playSteps(t, f, []step{{"allocation typed", 0, "released"}})
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this system has no terminals to open: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}
