package deploytest_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
)

// TestThreeHosts plays deploy/README.md "Three nodes": with the files of deploy, three hosts form a cluster, serve
// without one of them, and get it back.
func TestThreeHosts(t *testing.T) {
	isolated := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc",
		"ip", "link", "add", "hosts", "type", "bridge")
	if out, err := isolated.CombinedOutput(); err != nil {
		t.Skipf("no namespaces can be made here: %v\n%s", err, out)
	}
	script := exec.CommandContext(t.Context(), "../hosts/three.sh", servertest.Quorate.Path(t))
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderrOf(err))
	}
	if want := "formed\nserved without n3\n" + "n3 is back\n"; string(out) != want {
		t.Errorf("the script says\n%s\nwant\n%s", out, want)
	}
}

func stderrOf(err error) []byte {
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.Stderr
	}
	return nil
}
