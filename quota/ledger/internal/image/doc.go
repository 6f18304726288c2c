// Package image is the layer of the ledger that takes a state apart and puts it together again: snapshots, restoring
// them, and the check of all invariants.
//
// It uses packages state, admit and configure; the rules let it use permit too. How records are written as bytes is in
// package fsm.
//
//   - [TakeSnapshot] costs the nodes and the waiting requests, not the allocations. A [Snapshot] shares memory with the
//     state and may be read while the state changes; what it yields must not be changed.
//   - A [Restorer] takes the parts of a snapshot in the order that its comment gives. After an error it must not be
//     used. [Restorer.Finish] returns a state only if no invariant is broken.
//   - [CopyForPlans] makes a copy that answers dry runs of changes of the configuration, and carries out one. It does
//     not remember enough for anything else.
//   - [Check] recomputes all derived state and returns the first invariant that is broken. It visits everything.
//     The invariants are numbered in the comment of package ledger.
//
// # Where to change what
//
//	what a snapshot has                     snapshot.go, snapshot_waiting.go, calendar_image.go
//	restoring                               restore.go, restore_items.go, and the files of snapshots for their parts
//	copies for plans and forecasts          copy_for_plans.go
//	the check                               verify.go (usage and trees), verify_records.go, verify_parts.go (items,
//	                                        principals, borrow indexes), verify_queue.go, verify_holds.go
//
// State that grows is added to the snapshot, to the restorer and to the check in one commit. DESIGN.md says what a
// snapshot contains and what it does not.
package image
