// Package explain is the layer of the ledger that says what is in the way of a request, and what would help.
//
// It may use all layers below package ledger. A search for a remedy changes the state and takes the change back, and a
// request that is only placed uses memory of the state, so no other call may use the state meanwhile: package ledger
// offers both in its Sandbox. [DenialHolders] and [BlockersOf] only read.
//
//   - [LevelsOf] lists the limits that a request passes or that stop it.
//   - [BlockersOf] names who is in the way, as far as the reader sees them.
//   - [FindRemedyOfAny] looks for raises of limits and for releases that would admit the request. It does not compute
//     what would fit: it decides the request again on the changed state, and takes the change back with the undo list
//     of package admit.
//
// Everything is bounded: the decisions of a search (maxTrials), the newest records that it looks at ([read.Scanned]),
// and the length of an answer. So a remedy may be missing, or larger than necessary.
//
// # Where to change what
//
//	the search for a remedy                 explain.go; explain_raise.go (limits), explain_release.go (allocations)
//	who is in the way                       explain_holders.go, explain_level_holders.go, explain_ahead.go (requests in
//	                                        front in the queue)
//	which limits are passed                 explain_levels.go, explain_level_survey.go
package explain
