// Package ledger is the replicated state machine: who holds what, where, and what may still be granted.
//
// It is pure. Time, ids and order come in as arguments; there is no clock, no randomness, no I/O and no goroutine, so
// that every replica that applies the same commands has the same bytes.
//
// A [Ledger] changes only through [Ledger.Apply], one [quota.Command] at a time. Readers use a [Reader]. Questions that
// change the state and restore it, such as dry runs, use a [Sandbox], which only exclusive access lends. A [Snapshot]
// shares memory with the ledger and is read beside it; a [Restorer] builds a ledger from one.
//
// It has layers, each a package below internal with a page of its own: state, admit, configure, permit, image, read and
// explain. This package is the last one: the switch over all commands, and the questions that carry a command out and
// take it back.
//
// # Where to change what
//
//	what a command does                     execute.go (the switch over all commands), then the layer that it names
//	what the end of a command does          execute.go
//	what ends by itself                     expire.go
//	dry runs and explanations               sandbox.go
//	what a change would do to requests      what_if.go
//	when waiting requests would be granted  forecast.go
//	a ledger that replaces another one      supersede.go
//	what other packages know of the layers  ledger.go, aliases.go
//	rules of trees; bounds                  package quota/policy; quota.Bounds, and size.go in state for bytes
//	what a snapshot has                     image; package fsm writes it to the disk
//	what random tests compare with          package quota/quotatest/oracle, and here *_oracle_test.go
//
// DESIGN.md has the layers and the path of one command, and says which page of a layer explains which mechanism.
//
// # Invariants
//
// They keep the numbers of docs/consistency.md; [Ledger.Check] verifies them by recomputing everything (package image).
//
//	I1  subtree usage of a node = its own usage + the sum over its children
//	I2  own usage = sum over the claims placed at the node by held allocations
//	I3  what a user or group holds at a node, and which applications run = what the held claims of that node and those
//	    below say
//	I4  no admission raised any usage above a limit
//	I5  an item has at most one holder, and holder and item name each other
//	I6  under a policy that bounds the sum of children's limits, that sum is within the bound, with the limits that the
//	    calendar gives at the present civil time
//	I7  a waiting request is queued at a blocker that is in its way, and no waiting request could be granted; only one
//	    that exceeds a whole limit is aside, where it blocks no other
//	I8  fences are unique and increasing
//	I9  ledger time never decreases
//	I10 replaying the same commands, in any batching, with a snapshot and restore at any point, gives the same bytes
//	I11 comparing the use of every limit with its thresholds again crosses and clears none
package ledger
