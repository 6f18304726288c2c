// Package state is the lowest layer of the ledger: what is. A [State] consists of components, each with the data that
// it owns, the indexes that follow from them, and the operations that keep the two together. It decides about no
// request.
//
// It imports no other layer. The layers above read the fields, and change them through the methods of the component
// where one exists: [Allocations.ChargeClaim] and [Allocations.RefundClaim] for what is held, [WaitQueue.JoinQueue] and
// [WaitQueue.LeaveQueue] for the queue, [Journal.NoteEvent] and [Journal.NoteFact] for what is told.
//
// What callers may rely on:
//
//   - An [Allocation] and an [Item] that a reader may have seen are not changed any more. A change makes another
//     record, see [Allocations.ReplaceRecord].
//   - A [Node] stays the same pointer as long as it exists, through renames, moves and changes of the configuration.
//   - No order that can be observed comes from a map.
//   - Sizes in bytes follow from the content of records alone, so they are equal on all replicas.
//
// Commands that concern one component and no other layer are carried out here: [State.SetCivilOffset], and those about
// webhooks ([Webhooks.Set], [Webhooks.Manage], [Webhooks.Advance]).
//
// # Where to change what
//
//	what the state consists of, outcomes    state.go
//	trees and nodes                         forest.go, policies.go, pool.go (cohorts); change_marks.go for what changed
//	usage                                   charge.go counts claims, usage.go answers how much is used
//	records of allocations and their ends   allocation.go, details.go (rare properties), declared_end.go, reasons.go,
//	                                        shared_claims.go, tombstones.go
//	users and groups                        principals.go
//	claims that borrow softly               borrow_index.go
//	thresholds of limits                    thresholds.go
//	waiting requests                        queue.go, queue_blockers.go (what they wait for), queue_order.go (who may
//	                                        overtake), waiting_count.go
//	items                                   inventory.go
//	what ends by itself, civil time         deadlines.go; calendar.go, civil.go
//	who gives the present command           rights.go
//	requests for limits, webhooks           limit_requests.go, webhooks.go
//	events and facts, past configurations   journal.go, journal_denials.go; history.go
//	bounds in bytes                         size.go; all other bounds are quota.Bounds
//
// DESIGN.md has the table of components, thresholds, and why the memory is as it is.
package state
