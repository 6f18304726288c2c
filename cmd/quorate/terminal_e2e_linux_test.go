package main_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
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
	// Ctrl-C ends it, but a shell that is about to start a command may lose one. Once the command has ended it would
	// reach quorate itself, which a second one ends without a release.
	awaitTrue(t, func() bool {
		front, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPGRP)
		if err != nil || front == command.Process.Pid || !p.isRunning() {
			return true
		}
		_, err = keyboard.WriteString("\x03")
		return err != nil
	})
	if end := p.awaitEnd(t); end.code != 130 {
		t.Errorf("exit code %d\n%s%s", end.code, end.stdout, end.stderr)
	}
	playSteps(t, f, []step{{"allocation show typed", 0, "released"}})
}

// TestTopAtATerminal: the screen follows a grant and the size of the terminal, and ends with a key. Without a terminal
// the command names another one.
func TestTopAtATerminal(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml", 0, ""}, {"top", 2, "quorate usage TREE --watch"},
	})
	keyboard, screen := openTerminal(t)
	resize := func(columns, lines uint16) {
		size := &unix.Winsize{Col: columns, Row: lines}
		if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, size); err != nil {
			t.Fatal(err)
		}
	}
	resize(80, 24)
	command := exec.Command(binary, "top", "--server", f.baseURL())
	command.Stdin, command.Stdout, command.Env = screen, screen, []string{"TERM=xterm-256color"}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := startCommand(t, command)
	go func() { _, _ = io.Copy(&p.stdout, keyboard) }()
	columns := uint16(80)
	awaitDrawn := func(texts ...string) {
		t.Helper()
		awaitTrue(t, func() bool { // another size is drawn as a whole, and not as the difference to the screen before
			columns = 201 - columns
			resize(columns, 40)
			shown := p.stdout.String()
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(shown, text) })
		})
	}
	awaitDrawn("FULLEST NODES (3)", "cern:atlas")
	playSteps(t, f, []step{
		{"allocate --id seen --at cern:atlas/operations/web --amount cores=30 --ttl 1h --user evil\x1b[2J", 0, ""},
	})
	awaitDrawn("100%  cores  30 of 30", `evil\x1b[2J`)
	for _, key := range []string{"?", "x", "q"} {
		if _, err := keyboard.WriteString(key); err != nil {
			t.Fatal(err)
		}
		if key == "?" {
			awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), "Any key closes this page.") })
		}
	}
	if end := p.awaitEnd(t); end.code != 0 {
		t.Errorf("exit code %d\n%s", end.code, end.stderr)
	}
}

// TestManifestCreateAtATerminal: what no flag says is asked, and a wrong answer once more. The questions are not in
// what is printed.
func TestManifestCreateAtATerminal(t *testing.T) {
	t.Parallel()
	keyboard, screen := openTerminal(t)
	command := exec.Command(binary, "manifest", "create", "farm", "--waiting=false")
	command.Stdin, command.Stderr = screen, screen
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if _, err := keyboard.WriteString("gpu\ngpu=4 disk=2Ti\nweb data\nreclaim\nn\n"); err != nil {
		t.Fatal(err)
	}
	p := startCommand(t, command)
	go func() { _, _ = io.Copy(&p.stderr, keyboard) }()
	if end := p.awaitEnd(t); end.code != 0 {
		t.Fatalf("exit code %d\n%s", end.code, p.stderr.String())
	}
	awaitTrue(t, func() bool { return strings.Contains(p.stderr.String(), "5. Do holders renew") })
	asked, made := p.stderr.String(), p.stdout.String()
	if !strings.Contains(asked, `"gpu" is not NAME=AMOUNT`) || strings.Contains(asked, "4. Do jobs wait") {
		t.Errorf("it asked\n%s", asked)
	}
	for _, text := range []string{
		"policy: borrowing", "do not give --wait", "is held until it is released", "disk: 1Ti}",
	} {
		if !strings.Contains(made, text) {
			t.Errorf("%q is not in\n%s", text, made)
		}
	}
	if strings.Contains(made, "1. What do you share?") {
		t.Errorf("a question is in the manifest\n%s", made)
	}
}

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

// TestOutputAtATerminal: differences have colours at a terminal unless NO_COLOR forbids it, long tables go through the
// pager, and a command that deletes a tree asks first.
func TestOutputAtATerminal(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/cern.yaml", 0, ""}})
	run := func(typed string, environment []string, args ...string) *process {
		t.Helper()
		keyboard, screen := openTerminal(t)
		size := &unix.Winsize{Col: 120, Row: 5}
		if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, size); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(binary, append(args, "--server", f.baseURL())...)
		command.Stdin, command.Stdout, command.Stderr = screen, screen, screen
		command.Env = append([]string{"TERM=xterm-256color", "NO_COLOR="}, environment...)
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if _, err := keyboard.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		p := startCommand(t, command)
		go func() { _, _ = io.Copy(&p.stdout, keyboard) }()
		p.awaitEnd(t)
		return p
	}
	shows := func(p *process, text string, want bool) {
		t.Helper()
		if want {
			awaitTrue(t, func() bool { return strings.Contains(p.stdout.String(), text) })
		} else if strings.Contains(p.stdout.String(), text) {
			t.Errorf("%v shows %q: %q", p.Args, text, p.stdout.String())
		}
	}
	const green = "\x1b[32m+ ci"
	plan := []string{"plan", "-f", "../../examples/ci.yaml"}
	shows(run("", []string{"QUORATE_PAGER=cat"}, plan...), green, true)
	plain := run("", []string{"QUORATE_PAGER=cat", "NO_COLOR=1"}, plan...)
	shows(plain, "+ ci", true)
	shows(plain, green, false)
	shows(run("", []string{"QUORATE_PAGER=sed 's/^/paged: /'"}, "usage", "cern"), "paged:   atlas", true)
	shows(run("", []string{"QUORATE_PAGER=sed 's/^/paged: /'"}, "usage", "cern:atlas/physics/higgs"), "paged:", false)

	if p := run("no\n", nil, "tree", "delete", "cern"); p.ProcessState.ExitCode() != 2 {
		t.Errorf("exit code %d: %s", p.ProcessState.ExitCode(), p.stdout.String())
	}
	playSteps(t, f, []step{{"tree list", 0, "cern"}})
	if p := run("yes\n", nil, "tree", "delete", "cern"); p.ProcessState.ExitCode() != 0 {
		t.Errorf("exit code %d: %s", p.ProcessState.ExitCode(), p.stdout.String())
	}
}
