//go:build invariants

package ledger

// selfCheck verifies every invariant after every command while the ledger is small, and after some commands when it is
// large.
func (l *Ledger) selfCheck() {
	if l.isCopy || l.allocations.held.Len() > 100 && (l.allocations.fence+l.allocations.endings)%97 != 0 {
		return // a copy for plans knows few ended allocations
	}
	if err := l.Check(); err != nil {
		panic("quota: " + err.Error())
	}
}
