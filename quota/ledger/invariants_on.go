//go:build invariants

package ledger

// selfCheck verifies every invariant after every command while the ledger is small, and now and then when it is not.
func (l *Ledger) selfCheck() {
	if l.allocations.held.Len() > 100 && (l.allocations.fence+l.allocations.endings)%97 != 0 {
		return
	}
	if err := l.Check(); err != nil {
		panic("quota: " + err.Error())
	}
}
