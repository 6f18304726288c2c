package hostile

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/verify"
)

// TestAClusterWithoutAttackers shows that what the other tests look at works while nobody attacks.
func TestAClusterWithoutAttackers(t *testing.T) {
	for name, o := range map[string]options{"plain": {}, "encrypted": {encrypted: true}} {
		t.Run(name, func(t *testing.T) {
			if !o.encrypted {
				verify.Only(t)
			}
			c := startCluster(t, o)
			c.applyTree(t, 100)
			_, follower := c.leader(t)
			if rate := c.pairs(t, follower, 4, 2*time.Second); rate == 0 {
				t.Error("no pair was carried out")
			}
			if end := run(t, append([]string{"usage", "t"}, c.flags(follower)...)...); end.code != 0 {
				t.Errorf("%+v", end)
			}
			if follower.memory(t, "VmHWM") < follower.memory(t, "VmRSS")/2 {
				t.Error("the most memory is less than the present one")
			}
			follower.restart(t)
			c.awaitReady(t)
		})
	}
}
