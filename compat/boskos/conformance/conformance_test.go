package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRealNodes is one day of a cluster: one after the other, so that a small machine keeps up.
func TestRealNodes(t *testing.T) {
	c := start(t, configuration(t))
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"recorded", c.recorded},
		{"lease", c.lease},
		{"tools", c.tools},
		{"many types", c.manyTypes},
		{"line", c.line},
		{"command line", c.commandLine},
		{"storm", c.storm},
	} {
		began := time.Now()
		t.Run(test.name, test.run)
		t.Logf("%s: %v", test.name, time.Since(began).Round(time.Millisecond))
	}
}

const (
	manyTypes = 300
	manyNames = 1700
)

// configuration is what the exchanges begin with, what the other tests need, and as much as OpenShift has: hundreds of
// types, some 1,700 names, and a dynamic type of a thousand.
func configuration(t *testing.T) string {
	t.Helper()
	var file strings.Builder
	for _, part := range []string{"../testdata/exchanges.yaml", "resources.yaml"} {
		text, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(text)
	}
	names := make([][]string, manyTypes)
	for n := range manyNames {
		names[n%manyTypes] = append(names[n%manyTypes],
			fmt.Sprintf("us-east-1--many-%03d-quota-slice-%02d", n%manyTypes, n/manyTypes))
	}
	for n, list := range names {
		fmt.Fprintf(&file, "- type: many-%03d-quota-slice\n  state: free\n  names: [%s]\n", n, strings.Join(list, ", "))
	}
	file.WriteString("- type: metal-quota-slice\n  state: free\n  min-count: 1000\n  max-count: 1000\n")
	path := filepath.Join(t.TempDir(), "boskos.yaml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded plays what was recorded from the original, through a node that does not lead.
func (c *cluster) recorded(t *testing.T) {
	t.Helper()
	_, others := c.Leader(t)
	command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestExchanges$", "./compat/boskos",
		"-args", "-at", c.url(others[0]))
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// manyTypes are all there.
func (c *cluster) manyTypes(t *testing.T) {
	t.Helper()
	me := newClient(t, "me", c.url(c.Servers[2]))
	for n := 0; n < manyTypes; n += 50 {
		rtype := fmt.Sprintf("many-%03d-quota-slice", n)
		r, err := me.Acquire(rtype, "free", "leased")
		if err != nil {
			t.Fatal(err)
		}
		if region, _, cut := strings.Cut(r.Name, "--"); !cut || region != "us-east-1" {
			t.Errorf("%s is called %s", rtype, r.Name)
		}
		if err := me.ReleaseOne(r.Name, "free"); err != nil {
			t.Error(err)
		}
	}
	metric, err := me.Metric("metal-quota-slice")
	if err != nil || metric.Current["free"] != 1000 {
		t.Errorf("Metric = %+v, %v", metric, err)
	}
}
