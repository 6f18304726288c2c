// Package planted holds bugs that chaos must find: a harness that finds none of them proves nothing.
//
// Each bug is a patch beside this file. It is applied to copies of the product's sources, which `go build -overlay`
// then reads in place of the originals, so the product itself has no hooks.
package planted

import (
	"embed"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/chaos/overlay"
)

// Bug is a planted bug and the runs that reveal it soonest.
type Bug struct {
	// Name is also the name of the patch file, which describes the bug and the promise that it breaks.
	Name string
	// Faults and Workloads are those of the runs that look for the bug; nil is all of them.
	Faults, Workloads []string
	Length            time.Duration
	// VirtualTime is set if the bug shows in chaos/simtest too. Clocks and processes cannot be disturbed there, and all
	// nodes are one process, so that a bug that only some processes have makes no difference between them.
	VirtualTime bool
	// Guarded is set if the bug shows in guarded clusters only.
	Guarded bool
}

var allBugs = []Bug{
	{
		Name: "early-acknowledge", Faults: []string{"isolate-leader", "split"}, Length: 40 * time.Second,
		VirtualTime: true,
	},
	{
		Name: "stale-read", Faults: []string{"pause-leader"}, Workloads: []string{"deep", "pair", "read"},
		Length: 60 * time.Second,
	},
	{Name: "wall-clock", Faults: []string{"clock-leader"}, Length: 30 * time.Second},
	{
		Name: "forget-ids", Faults: []string{"kill-all", "kill-leader"}, Workloads: []string{"read", "retry", "watch"},
		Length: 40 * time.Second, VirtualTime: true,
	},
	{
		Name: "double-grant", Faults: []string{"kill-all", "lagging-follower"},
		Workloads: []string{"items", "boskos", "read", "watch"}, Length: 40 * time.Second, VirtualTime: true,
	},
	{Name: "skip-command", Faults: []string{"kill-leader"}, Length: 20 * time.Second},
	{Name: "map-order", Faults: []string{"kill-leader"}, Length: 20 * time.Second, VirtualTime: true},
	{Name: "one-too-many", Faults: []string{"pause-follower"}, Length: 15 * time.Second, VirtualTime: true},
	{Name: "early-expiry", Faults: []string{"pause-follower"}, Length: 20 * time.Second, VirtualTime: true},
	{
		Name: "early-free", Faults: []string{"kill-leader"}, Workloads: []string{"pair", "read", "watch"},
		Length: 20 * time.Second, VirtualTime: true,
	},
	{
		Name: "early-permission", Faults: []string{"delay", "slow-disk"}, Workloads: []string{"deep", "read"},
		Length: 30 * time.Second, VirtualTime: true, Guarded: true,
	},
	{
		Name: "skip-record", Faults: []string{"kill-follower", "lagging-follower"}, Workloads: []string{"deep", "limits"},
		Length: 40 * time.Second, VirtualTime: true, Guarded: true,
	},
	{
		Name: "early-delivery", Faults: []string{"kill-leader"}, Workloads: []string{"pair", "read", "watch"},
		Length: 20 * time.Second,
	},
	{
		Name: "one-clock", Faults: []string{"clock-leader"}, Workloads: []string{"calendar", "read"},
		Length: 30 * time.Second, VirtualTime: true,
	},
	{
		Name: "range-too-large", Faults: []string{"kill-leader"}, Workloads: []string{"ranges", "read"},
		Length: 15 * time.Second, VirtualTime: true,
	},
	{
		Name: "hold-leaks", Faults: []string{"kill-leader"}, Workloads: []string{"holds", "read"},
		Length: 15 * time.Second, VirtualTime: true,
	},
	{
		Name: "lost-threshold", Faults: []string{"kill-leader"}, Workloads: []string{"warn", "read"},
		Length: 15 * time.Second, VirtualTime: true,
	},
	{
		Name: "alternative-stays", Faults: []string{"kill-leader"}, Workloads: []string{"elastic", "read"},
		Length: 15 * time.Second, VirtualTime: true,
	},
	{
		Name: "resize-frees-early", Faults: []string{"kill-leader"}, Workloads: []string{"elastic", "read"},
		Length: 15 * time.Second, VirtualTime: true,
	},
	{
		Name: "end-moves", Faults: []string{"kill-leader"}, Workloads: []string{"elastic", "read"},
		Length: 15 * time.Second, VirtualTime: true,
	},
	{
		Name: "no-ticks", Faults: []string{"kill-leader"}, Workloads: []string{"quiet"}, Length: 60 * time.Second,
		VirtualTime: true,
	},
	{Name: "queue-jump", Faults: []string{"pause-follower"}, Length: 20 * time.Second, VirtualTime: true},
}

//go:embed *.patch
var patchFiles embed.FS

// Bugs returns all planted bugs.
func Bugs() []Bug { return slices.Clone(allBugs) }

// Apply adds a bug to an overlay of the module whose folder is root. It fails if any part of the patch does not fit the
// sources there.
func Apply(bug, root string, o *overlay.Overlay) error {
	text, err := patchFiles.ReadFile(bug + ".patch")
	if err != nil {
		return fmt.Errorf("there is no planted bug %q: %w", bug, err)
	}
	p, err := parsePatch(string(text))
	if err != nil {
		return fmt.Errorf("chaos/planted/%s.patch: %w", bug, err)
	}
	if err := p.addTo(root, o); err != nil {
		return fmt.Errorf("chaos/planted/%s.patch no longer applies: %w", bug, err)
	}
	return nil
}
