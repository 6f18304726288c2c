package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quorate/quorate/compat"
)

const zuulExamples = "../../examples/zuul"

// python returns a command that runs Python 3 beside the example for Zuul, and skips the test if there is none.
func python(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not on this machine: examples/zuul/quorate_quota.py is not tested")
	}
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = zuulExamples
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	return c
}

// TestZuulDriver runs the Python tests of the example for launchers of Zuul against a server with the limits of the
// example's nodepool.yaml.
func TestZuulDriver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tests := python(ctx, t, "-m", "unittest", "-v", "test_quorate_quota")
	f := singleServer(t)
	startServer(t, f)
	applied := runCommand(t, "apply", "--from", "zuul", "-f", zuulExamples+"/nodepool.yaml", "--server", f.baseURL())
	if applied.code != 0 {
		t.Fatal(applied.stderr)
	}
	tests.Env = append(tests.Env, "QUORATE_SERVER="+f.baseURL())
	out, err := tests.CombinedOutput()
	if err != nil || strings.Contains(string(out), "skipped") || !strings.Contains(string(out), "\nOK") {
		t.Errorf("the tests of the driver: %v\n%s", err, out)
	}
}

// TestZuulDriverNamesTenants: the driver finds the nodes that quorate apply --from zuul makes.
func TestZuulDriverNamesTenants(t *testing.T) {
	t.Parallel()
	tenants := []string{
		"tenant-1", "team one", "_", "_a", "_+", "_ a", "__", "-a", ".a", "@", "_-", "_.", "a+b", "a_b", "ä", "日本", "a/b", "a\nb",
		strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("+", 20), strings.Repeat("+", 21), "_é",
	}
	list, err := json.Marshal(tenants)
	if err != nil {
		t.Fatal(err)
	}
	out, err := python(t.Context(), t, "-c", "import json, sys\nfrom quorate_quota import node_name\n"+
		"print(json.dumps([node_name(t) for t in json.loads(sys.argv[1])]))", string(list)).Output()
	var nodes []string
	if err == nil {
		err = json.Unmarshal(out, &nodes)
	}
	if err != nil || len(nodes) != len(tenants) {
		t.Fatalf("%v: %s", err, out)
	}
	for i, tenant := range tenants {
		if want, err := compat.Name(tenant); err != nil || nodes[i] != want {
			t.Errorf("tenant %q is node %q, want %q, %v", tenant, nodes[i], want, err)
		}
	}
}
