package scenarios

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

// requireTools skips on a machine without the programs. make verify-sdks then fails instead.
func requireTools(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		const remedy = "make sdks installs what the clients need"
		if os.Getenv("QUORATE_SDKS") == "require" {
			t.Fatalf("this machine has no %s: %s", program, remedy)
		}
		t.Skipf("this machine has no %s: %s", program, remedy)
	}
}

func runIn(t *testing.T, folder string, environment []string, command ...string) (string, int) {
	t.Helper()
	process := exec.CommandContext(t.Context(), command[0], command[1:]...)
	process.Dir, process.Env = folder, append(os.Environ(), environment...)
	out, err := process.CombinedOutput()
	if err != nil && process.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), process.ProcessState.ExitCode()
}

func mustRun(t *testing.T, folder string, command ...string) string {
	t.Helper()
	out, status := runIn(t, folder, nil, command...)
	if status != 0 {
		t.Fatalf("%s ends with status %d:\n%s", strings.Join(command, " "), status, out)
	}
	return out
}

// TestPythonUnits runs the client's own tests against servers of their own.
func TestPythonUnits(t *testing.T) {
	requireTools(t, "python3")
	t.Parallel() // it waits most of the time
	out := mustRun(t, "../python", "python3", "-B", "-m", "unittest", "discover", "tests")
	if !strings.Contains(out, "\nRan ") || strings.Contains(out, "Ran 0 tests") {
		t.Errorf("no test ran:\n%s", out)
	}
}

// TestPythonTypes checks the types of the client, its tests and its example.
func TestPythonTypes(t *testing.T) {
	verify.Only(t) // ten seconds
	requireTools(t, "mypy")
	mustRun(t, "../python", "mypy", "--cache-dir="+t.TempDir())
}
