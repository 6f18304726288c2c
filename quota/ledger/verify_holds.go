package ledger

import "fmt"

// checkHolds verifies that exactly the nodes on hold are known, that drains have revoked all leases, and that exactly
// those without anything left have been announced.
func (v verifier) checkHolds() error {
	onHold := 0
	for _, t := range v.ledger.forest.trees {
		for _, n := range t.byPath {
			if n.hold == nil {
				continue
			}
			onHold++
			if v.ledger.forest.onHold[n.id] != n {
				return fmt.Errorf("%s is on hold, but not among the nodes that are", n.place())
			}
			if n.hold.Drain && n.hold.DrainAt == 0 && n.hold.Drained == n.isUsed() {
				return fmt.Errorf("the drain of %s has ended: %t, and something is held there: %t", n.place(),
					n.hold.Drained, n.isUsed())
			}
		}
	}
	if onHold != len(v.ledger.forest.onHold) {
		return fmt.Errorf("%d nodes are on hold, but %d are known", onHold, len(v.ledger.forest.onHold))
	}
	if onHold == 0 {
		return nil
	}
	for _, a := range v.ledger.allocations.held.All() {
		for i := range a.claims {
			n := a.claims[i].home().draining()
			if is := a.lease(); n != nil && n.hold.DrainAt == 0 && is.isRevocable() && is.revokedBy == "" {
				return fmt.Errorf("lease %q is at a node that is being drained, but not revoked", a.id)
			}
		}
	}
	return nil
}
