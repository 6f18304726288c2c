package image

import (
	"fmt"

	"github.com/quorate/quorate/quota/ledger/internal/admit"
)

// checkHolds verifies that exactly the nodes on hold are known, that drains have revoked all leases, and that exactly
// those without anything left have been announced.
func (v verifier) checkHolds() error {
	onHold := 0
	for _, t := range v.state.Forest.Trees {
		for _, n := range t.ByPath {
			if n.Hold == nil {
				continue
			}
			onHold++
			if v.state.Forest.OnHold[n.ID] != n {
				return fmt.Errorf("%s is on hold, but not among the nodes that are", n.Place())
			}
			if n.Hold.Drain && n.Hold.DrainAt == 0 && n.Hold.Drained == admit.IsUsed(n) {
				return fmt.Errorf("the drain of %s has ended: %t, and something is held there: %t", n.Place(),
					n.Hold.Drained, admit.IsUsed(n))
			}
		}
	}
	if onHold != len(v.state.Forest.OnHold) {
		return fmt.Errorf("%d nodes are on hold, but %d are known", onHold, len(v.state.Forest.OnHold))
	}
	if onHold == 0 {
		return nil
	}
	for _, a := range v.state.Allocations.Held.All() {
		for i := range a.Claims {
			n := admit.IsDraining(a.Claims[i].Home())
			if lease := a.Lease(); n != nil && n.Hold.DrainAt == 0 && lease.IsRevocable() && lease.RevokedBy == "" {
				return fmt.Errorf("lease %q is at a node that is being drained, but not revoked", a.ID())
			}
		}
	}
	return nil
}
