package ledger

import "github.com/quorate/quorate/quota"

// Fact is a change of state of one allocation, for those who watch. It is no part of the state.
type Fact struct {
	Kind FactKind
	// Allocation is the record after it.
	Allocation *Allocation
	// Since is when a request that was granted from the queue had come into it; 0 for all others.
	Since quota.Instant
}

// FactKind says what has happened.
type FactKind uint8

// The closed list.
const (
	FactWaiting   FactKind = 1
	FactGranted   FactKind = 2
	FactConfirmed FactKind = 3
	FactRevoked   FactKind = 4
	FactEnded     FactKind = 5
	FactRestored  FactKind = 6
	// FactShrunk: some of its items were given back.
	FactShrunk FactKind = 7
)
