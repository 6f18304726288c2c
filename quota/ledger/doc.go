// Package ledger is the replicated state machine: who holds what, where, and what may still be granted.
//
// It is pure. Time, ids and order come in as arguments; there is no clock, no randomness, no I/O and no goroutine, so
// that every replica that applies the same commands holds the same bytes.
//
// A [Ledger] changes only through [Ledger.Apply], one [quota.Command] at a time. Readers use a [View].
//
// # Invariants
//
// They keep the numbers of docs/consistency.md; [Ledger.Check] verifies them by recomputing everything.
//
//	I1  subtree usage of a node = its own usage + the sum over its children
//	I2  own usage = sum over the claims placed at the node by held allocations
//	I3  what a user or group holds at a node, and which applications run = what the held claims at home there and below say
//	I4  no admission raised any usage above a limit
//	I6  under a policy that bounds the sum of children's limits, that sum is within the bound
//	I7  a waiting request is queued at something that is in its way, and no waiting request could be granted
//	I8  fences are unique and increasing
//	I9  ledger time never decreases
//	I10 replaying the same commands, in any batching, with a snapshot and restore at any point, gives the same bytes
package ledger
