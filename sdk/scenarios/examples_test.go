package scenarios

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

type example struct {
	command []string
}

var pythonExample = example{[]string{"python3", "-B", "../python/example.py"}}

// testExample runs an example that is granted, and one that is denied.
func testExample(t *testing.T, c *cluster, e example) {
	t.Helper()
	run := func(amount string) (string, int) {
		args := slices.Concat(e.command, []string{strings.Join(c.URLs, ","), "lab:physics", amount})
		return runIn(t, ".", nil, args...)
	}
	if out, status := run("cores=4"); status != 0 || !strings.Contains(out, "granted") ||
		!strings.Contains(out, "released") {
		t.Errorf("the example ends with status %d and prints:\n%s", status, out)
	}
	out, status := run("cores=200")
	const reason = "lab:physics cores: limit 10, used 0, requested 200, missing 190"
	if status != 3 || !strings.Contains(out, "denied") || !strings.Contains(out, reason) ||
		!strings.Contains(out, "lab: cores: limit 100") {
		t.Errorf("a denied example ends with status %d and prints:\n%s\nwant %q", status, out, reason)
	}
}

func TestPythonExample(t *testing.T) {
	verify.Only(t) // three seconds
	requireTools(t, "python3")
	testExample(t, startCluster(t), pythonExample)
}
