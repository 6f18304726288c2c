package scenarios

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// player is a running program that plays steps.
type player struct {
	t       *testing.T
	steps   io.WriteCloser
	answers chan string
	// group is the process group of the player; 0 if it plays in this process.
	group int
	// withdrawsOnSignal is true if the client withdraws what waits when SIGTERM ends the program. In the others the
	// program decides: a context in Go, and an exception in Python.
	withdrawsOnSignal bool
}

// terminate ends the player and what it has started by SIGTERM, and skips the scenario for a client that does nothing
// then.
func (p *player) terminate() {
	p.t.Helper()
	if !p.withdrawsOnSignal {
		p.t.Skip("the program decides what a signal does")
	}
	if err := syscall.Kill(-p.group, syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// startProcess starts the player of a language; it ends with the test.
func startProcess(t *testing.T, servers, command []string, environment ...string) *player {
	t.Helper()
	process := exec.Command(command[0], append(command[1:], strings.Join(servers, ","))...)
	process.Env = append(os.Environ(), environment...)
	process.Stderr = os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	steps, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	p := newPlayer(t, steps, answers)
	p.group = process.Process.Pid
	t.Cleanup(func() {
		_ = steps.Close()
		ended := make(chan struct{})
		go func() {
			_ = process.Wait() // its outcomes were judged
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("%v does not end with its input", command)
		}
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) // what it has started, if anything is left
		<-ended
	})
	return p
}

func newPlayer(t *testing.T, steps io.WriteCloser, answers io.Reader) *player {
	t.Helper()
	p := &player{t: t, steps: steps, answers: make(chan string)}
	go func() {
		defer close(p.answers)
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			select {
			case p.answers <- lines.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	return p
}

func (p *player) play(play map[string]any) map[string]any {
	p.t.Helper()
	line, err := json.Marshal(play)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.steps.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("the player does not take %s: %v", line, err)
	}
	select {
	case text, running := <-p.answers:
		if !running {
			p.t.Fatalf("the player has ended at %s", line)
		}
		var answer map[string]any
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			p.t.Fatalf("the player answers %q to %s: %v", text, line, err)
		}
		return answer
	case <-time.After(patience):
		p.t.Fatalf("the player does not answer %s", line)
	}
	return nil
}
