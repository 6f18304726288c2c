// Package ledger is the replicated state machine: who holds what, where, and what may still be granted.
//
// It is pure. Time, ids and order come in as arguments; there is no clock, no randomness, no I/O and no goroutine, so
// that every replica that applies the same commands holds the same bytes.
//
// A [Ledger] changes only through [Ledger.Apply], one [quota.Command] at a time. Readers use a [Reader]. Questions that
// change the state and restore it, such as dry runs, use a [Sandbox], which only exclusive access lends. A [Snapshot]
// shares memory with the ledger and is read beside it; a [Restorer] builds a ledger from one.
//
// # Where to change what
//
//	what the state consists of              state.go; layers.txt has the layer of each file
//	what a command does                     ledger.go (the switch over all commands), then the file named after it
//	how a request is decided                admission.go and tx.go; placement.go for its shape, staged.go if others move,
//	                                        hold_check.go for nodes on hold, principals_check.go for users and groups,
//	                                        cohort.go and borrow.go for borrowing and preemption
//	which rules a tree can follow           package quota/policy; config_rules.go asks them
//	configuration: text to draft            config_draft.go, config_principals.go, inventory_config.go
//	policies that a configuration defines   config_policies.go
//	configuration: change, diff, install    config.go, config_change.go, config_diff.go, config_install.go, history.go
//	what a dry run says about a change      config_rules.go (effects), what_if.go
//	trees and nodes                         forest.go, pool.go (cohorts), dynamic_nodes.go; tx.go charges claims,
//	                                        usage.go answers how much is used
//	how a holding changes                   resize.go and split.go for its shape, holding_change.go, holding_commit.go,
//	                                        holding_levels.go for the limits
//	nodes on hold                           hold.go, hold_check.go and drain.go
//	records of allocations and their ends   allocation.go, details.go (rare properties), shared_claims.go, ending.go,
//	                                        lease.go
//	reservations                            reservation.go, reservation_restore.go, reservation_items.go
//	waiting requests                        queue.go, queue_entry.go (entering and leaving), queue_blockers.go (what they
//	                                        wait for), queue_drain.go (retrying), queue_order.go (who may
//	                                        overtake), alternatives.go (several lists of claims)
//	items                                   inventory.go, inventory_grant.go, inventory_change.go
//	who may do what                         rights.go, caller*.go and config_access.go decide with package access;
//	                                        access.go changes the book of accounts and tokens
//	requests for limits                     limit_requests.go (state), limit_request_commands.go, limit_request_reader.go
//	what a caller may see                   reader*.go, access_view.go
//	what ends by itself                     deadlines.go, expire.go, ending.go
//	events and facts                        journal.go
//	answers to reads                        reader_complete.go, principals_list.go; sandbox.go and explain*.go for
//	                                        decisions
//	bytes on disk                           snapshot.go, restore*.go, and package fsm
//	bounds in bytes                         size.go; all other bounds are quota.Bounds
//	invariants                              verify*.go
//	what random tests compare with          package quota/quotatest/oracle; queue_oracle_test.go, holders_oracle_test.go
//
// DESIGN.md explains the components and follows an allocation, a waiting request, a borrowed claim and a change of
// configuration through them.
//
// # Invariants
//
// They keep the numbers of docs/consistency.md; [Ledger.Check] verifies them by recomputing everything.
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
