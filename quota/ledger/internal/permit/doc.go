// Package permit is the layer of the ledger that decides who may give which command, and carries out the commands about
// that: accounts, tokens and mode, owners of allocations, requests for limits.
//
// It uses packages state, admit and configure. What a right means, and what a caller needs for a difference, is in
// package access, which decides; this layer finds the places to ask about.
//
// A [Guard] decides about one caller at one time: [NewGuard] about that of the present command, [GuardFor] about
// another one. [Guard.Permit] is asked before a command is carried out. For a change of the configuration it knows only
// whether the caller may read what it changes: the rest is decided difference by difference in [CommitPlan], before the
// plan is installed.
//
// In an open ledger everything is permitted. A ledger that is only watching notes what a guarded one would refuse.
// A refusal does not tell a caller of what it may not see: a hidden place or id is refused like one that does not
// exist.
//
// # Where to change what
//
//	what a guard knows                      caller.go
//	who may give a command                  caller_permit.go, caller_permit_change.go (changes of a holding, webhooks),
//	                                        caller_permit_apply.go (texts), caller_refusal.go
//	who may make a difference               caller_plan.go
//	committing a plan that was judged       plan_commit.go
//	scheduling limits                       schedule.go
//	accounts, tokens, mode                  access.go
//	owners of allocations without one       adopt.go
//	requests for limits                     limit_request_commands.go, auto_approve.go
package permit
