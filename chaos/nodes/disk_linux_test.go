package nodes

import (
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestChildrenDoNotInheritDisk: a process that inherits the descriptor of its own disk cannot exit without the
// harness.
func TestChildrenDoNotInheritDisk(t *testing.T) {
	faultyDisk(t)
	open, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(open), "/dev/fuse") {
		t.Errorf("%v: a child has open\n%s", err, open)
	}
}

// TestConcurrentUnmountOrphans: two harnesses may remove the mounts of a third one at the same time.
func TestConcurrentUnmountOrphans(t *testing.T) {
	const gone = mountMark + "99999999" // no process has this number
	for range 20 {
		for range 10 {
			if err := unix.Mount(gone, t.TempDir(), "tmpfs", 0, "size=64k"); err != nil {
				t.Skip("nothing can be mounted here:", err)
			}
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := unmountOrphans(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
}
