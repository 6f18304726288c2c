package workload

import (
	"context"

	"github.com/quorate/quorate/chaos/history"
)

// quietTTL is longer than a run, in milliseconds: the lease only makes the cluster measure time.
const quietTTL = 30 * 60_000

func quietTrees() []treeSpec { return []treeSpec{newTreeSpec("quiet", "", 1)} }

// startQuiet holds one lease that is never renewed and reads, so that a cluster without other callers writes nothing of
// its own accord but what measures time.
func startQuiet(c *caller) func(context.Context) {
	lease := requestSpec{id: c.newID(), claims: []history.Claim{claimAt("quiet", "", 1)}, ttl: quietTTL}
	granted := false
	return func(ctx context.Context) {
		if granted {
			c.readUsage(ctx, "quiet", readMode{})
			return
		}
		o := c.retryUntilDecided(ctx, func() history.Op { return c.callAllocate(ctx, lease) })
		granted = o.Outcome == history.OK
	}
}
