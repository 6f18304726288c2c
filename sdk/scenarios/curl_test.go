package scenarios

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

const curl = "../curl"

func TestCurl(t *testing.T) {
	playEverything(t, func(t *testing.T, servers []string) *player {
		t.Helper()
		return startProcess(t, servers, []string{curl + "/scenario_player.sh"})
	}, "curl", "jq")
}

// TestCurlIsInterrupted: a signal that ends a script takes its request out of the queue, and then ends the script.
func TestCurlIsInterrupted(t *testing.T) {
	verify.Only(t) // ten seconds
	requireTools(t, "curl", "jq")
	c := startCluster(t)
	c.Run(t, "allocate", "--id", "holder", "--at", "lab:physics", "--amount", "cores=8")
	script := exec.Command("bash", "-c", `. ../curl/quorate.sh
trap 'rm -rf "$quorate_dir"; echo trapped' EXIT
quorate_acquire '{"id":"doomed","keepMs":3600000,"claims":[{"tree":"lab","node":"physics","amounts":{"cores":5}}]}'`)
	script.Env = append(os.Environ(), "QUORATE_SERVERS="+strings.Join(c.URLs, " "))
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // SIGINT reaches all of the group, as from a terminal
	var said strings.Builder
	script.Stdout = &said
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	isWaiting := func() bool { return strings.Contains(c.Run(t, "queue", "list"), "doomed") }
	servertest.Await(t, patience, "the request waits", isWaiting)
	if err := syscall.Kill(-script.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := script.Wait(); err == nil || !strings.Contains(said.String(), "trapped") {
		t.Errorf("the script ended with %v and said %q", err, said.String())
	}
	if isWaiting() {
		t.Error("the request is still in the queue")
	}
}

func TestCurlExample(t *testing.T) {
	verify.Only(t) // ten seconds
	requireTools(t, "curl", "jq")
	testExample(t, startCluster(t), example{[]string{curl + "/example.sh"}})
}
