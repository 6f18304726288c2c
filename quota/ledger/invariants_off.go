//go:build !invariants

package ledger

// selfCheck does nothing in a released build; see invariants_on.go.
func (l *Ledger) selfCheck() {}
