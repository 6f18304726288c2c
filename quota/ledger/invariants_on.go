//go:build invariants

package ledger

import (
	"github.com/quorate/quorate/quota/ledger/internal/image"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// selfCheck verifies every invariant after every command while the ledger is small, and after some commands when it is
// large.
func selfCheck(s *state.State) {
	if s.IsCopy || s.Allocations.Held.Len() > 100 && (s.Allocations.Fence+s.Allocations.Endings)%97 != 0 {
		return // a copy for plans knows few ended allocations
	}
	if err := image.Check(s); err != nil {
		panic("quota: " + err.Error())
	}
}
