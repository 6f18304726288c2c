// Package admit is the layer of the ledger that decides whether something may be held, and carries out everything that
// takes from usage or gives to it: requests, changes of what is held, leases, reservations, ends, and the queue.
//
// It uses package state alone. It does not ask what the caller may do: package permit has done so before.
//
// A command is a function of its name, for example [Allocate] or [Resize]: it decides, and with [state.CarryOut]
// commits everything or nothing; a [state.DryRun] leaves the state as it was. Other layers try a request with an
// [Admission]:
//
//   - [Begin], then [Admission.Decide]. A denial has changed nothing, or has taken it back.
//   - After a grant the caller must call [Admission.Rollback]; only this package commits.
//   - An [UndoList] takes back the steps of any other attempt. It is the only way to revert a change of the state.
//   - After a command that frees or takes something, [AfterCommand] must run before anyone reads: until then waiting
//     requests may fit that are not granted.
//
// # Where to change what
//
//	the shape of a request                  placement.go, range.go (amounts from to), alternatives.go (several lists)
//	how it is decided                       admission.go, tx.go, staged.go if others move; hold_check.go for nodes on
//	                                        hold, principals_check.go for users and groups
//	borrowing and preemption                cohort.go (within bounds); borrow.go, borrow_move.go (soft)
//	nodes that requests create              dynamic_nodes.go
//	how a holding changes                   resize.go, transfer.go and split.go for its shape, holding_change.go,
//	                                        holding_commit.go, holding_levels.go for the limits
//	waiting requests                        queue_entry.go (entering and leaving), queue_drain.go (retrying);
//	                                        waiting_resize.go, waiting_resize_judge.go
//	leases, ends                            lease.go; ending.go, drain.go (of all leases at a node)
//	reservations                            reservation.go, reservation_restore.go, reservation_items.go
//	items                                   inventory_grant.go, inventory_change.go, inventory_retire.go
//
// DESIGN.md follows an allocation, a change of a holding, a waiting request, a borrowed claim, a node on hold and the
// end of an item through these files.
package admit
