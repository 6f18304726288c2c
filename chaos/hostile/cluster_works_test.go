package hostile

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/verify"
)

// TestClusterWithoutAttack: what the other tests check holds without an attack.
func TestClusterWithoutAttack(t *testing.T) {
	for name, o := range map[string]clusterOptions{"plain": {}, "encrypted": {encrypted: true}} {
		t.Run(name, func(t *testing.T) {
			if !o.encrypted {
				verify.Only(t)
			}
			c := startCluster(t, o)
			c.applyTree(t, 100)
			_, follower := c.findLeader(t)
			if rate := c.pairsPerSecond(t, follower, 4, 2*time.Second); rate == 0 {
				t.Error("no pair was carried out")
			}
			if end := runCommand(t, append([]string{"usage", "t"}, c.clientFlags(follower)...)...); end.code != 0 {
				t.Errorf("%+v", end)
			}
			if follower.memoryOf(t, "VmHWM") < follower.memoryOf(t, "VmRSS")/2 {
				t.Error("the most memory is less than the present one")
			}
			follower.restartProcess(t)
			c.awaitReady(t)
		})
	}
}
