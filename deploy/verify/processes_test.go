package verify

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// patience is the timeout of a single step on a busy machine.
const patience = 3 * time.Minute

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// newCommand does not pass on the environment of this process.
func newCommand(t *testing.T, environment, args []string) *exec.Cmd {
	t.Helper()
	command := servertest.Command(t, args...)
	command.Env = append([]string{"HOME=/nonexistent"}, environment...)
	return command
}

func runQuorate(t *testing.T, environment []string, args ...string) (code int, out string) {
	t.Helper()
	command := newCommand(t, environment, args)
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(text)
}

func startQuorate(t *testing.T, environment, args []string) {
	t.Helper()
	servertest.StartProcess(t, fmt.Sprint(args), newCommand(t, environment, args))
}

func await(t *testing.T, environment []string, args ...string) (out string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		code, out := runQuorate(t, environment, args...)
		if code == 0 {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v: exit code %d\n%s", args, code, out)
		}
	}
}

// mapped replaces addresses and paths of containers by those of this machine.
func mapped(texts []string, replacer *strings.Replacer) (list []string) {
	for _, text := range texts {
		list = append(list, replacer.Replace(text))
	}
	return list
}
