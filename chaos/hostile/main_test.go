package hostile

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// waitTimeout bounds every wait on a busy machine.
const waitTimeout = 2 * time.Minute

func TestMain(m *testing.M) {
	if servers := os.Getenv(holderServers); servers != "" {
		fmt.Fprintln(os.Stderr, holdShare(servers)) // it returns with an error only
		os.Exit(1)
	}
	servertest.Quorate.Plain = verify.Enabled() // its tests compare throughputs, which the race detector changes
	os.Exit(servertest.Main(m))
}

type commandResult struct {
	code           int
	stdout, stderr string
}

func runCommand(t *testing.T, args ...string) commandResult {
	t.Helper()
	p := servertest.StartProcess(t, "quorate "+strings.Join(args, " "), servertest.Command(t, args...))
	code := p.AwaitEnd(t, waitTimeout)
	return commandResult{code, p.Stdout.String(), p.Stderr.String()}
}

func lastLines(text string, count int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "")
}

func waitFor(t *testing.T, failure string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(waitTimeout); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(failure)
		}
	}
}
