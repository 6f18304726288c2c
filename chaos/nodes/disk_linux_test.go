package nodes

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNobodyInheritsADisk: a process that has the door to its own disk open cannot die without the harness.
func TestNobodyInheritsADisk(t *testing.T) {
	d, without, err := newDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.release(); err != nil {
			t.Error(err)
		}
	}()
	if !d.Faulty() {
		t.Skip("left out here:", without)
	}
	open, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(open), "/dev/fuse") {
		t.Errorf("%v: a child has open\n%s", err, open)
	}
}
