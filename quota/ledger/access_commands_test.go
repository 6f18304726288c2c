package ledger_test

import (
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// TestEveryCommandOfACaller: in a watching ledger each command is carried out for everyone, and a guarded one carries
// out for root, and refuses to a stranger, whatever there is.
func TestEveryCommandOfACaller(t *testing.T) {
	item := quota.ItemName{Tree: "cern", Resource: "machine", Name: "m1"}
	reserve := claimCores("reserved", "cms", 1)
	reserve.Mode, reserve.ReserveFor = quota.Reserve, 60_000
	other := claimCores("cancelled", "cms", 1)
	other.Mode, other.ReserveFor = quota.Reserve, 60_000
	lease := claimCores("lease", "cms", 1)
	lease.TTL = 60_000
	commands := []quota.Command{
		lease, reserve, other,
		quota.Renew{ID: "lease", TTL: 60_000},
		quota.Confirm{ID: "reserved"},
		quota.Cancel{ID: "cancelled"},
		quota.Release{ID: "lease"},
		quota.UpdateItems{Updates: []quota.ItemUpdate{{Item: item, State: "dirty"}}},
		quota.ResetItems{Tree: "cern", Resource: "machine", State: "dirty", To: "free"},
		setCores("cms", 39),
		quota.MoveNode{Tree: "cern", From: "cms", To: "cms2"},
		quota.MoveNode{Tree: "cern", From: "cms2", To: "cms"},
		quota.CordonNode{Tree: "cern"},
		quota.UncordonNode{Tree: "cern"},
		quota.RollBack{Revision: 1},
		quota.ApplyTrees{Trees: machineTree()},
		quota.ChangeAccess{Change: access.CreateAccount{Account: access.Account{Name: "new"}}},
		quota.Release{ID: "reserved"},
		quota.DeleteTree{Tree: "cern"},
	}
	t.Run("watching", func(t *testing.T) {
		g := newLedgerIn(t, access.Watching, machineTree(), "stranger")
		for _, c := range commands {
			out := g.must("stranger", c)
			switch c.(type) {
			case quota.Cancel, quota.Release: // an owner may always do that
			default:
				if out.WouldRefuse == nil {
					t.Errorf("nothing would refuse %T %+v to a stranger", c, c)
				}
			}
		}
	})
	t.Run("guarded", func(t *testing.T) {
		g := newGuarded(t, machineTree(), "stranger")
		for _, c := range commands {
			if out := g.apply("stranger", c); out.Refused == nil {
				t.Errorf("a stranger may %T %+v", c, c)
			}
			g.must("root", c)
		}
	})
}

func machineTree() []quota.TreeSpec {
	trees := cernTree()
	trees[0].Resources = append(trees[0].Resources, quota.Resource{
		Name: "machine", Unit: quota.Items, Items: &quota.ItemSpec{Names: []string{"m1"}},
	})
	return trees
}
