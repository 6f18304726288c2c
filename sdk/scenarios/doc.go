// Package scenarios lets the clients of all languages play one script against three real servers.
//
// script.yaml has the scenarios. A driver, the test of this package, starts the servers, kills, stops and restarts
// them, and tells a player what to do. A player is a small program beside each client: it reads one JSON object a line,
// does that with its client, and writes one JSON object a line with the outcome. What is done, in words of no language:
//
//	acquire       request an allocation, keep its lease renewed; background answers started, and await has the outcome
//	release       give a lease back
//	await-loss    wait until a lease is lost: lost and how, or held if it is not lost within so many seconds
//	await-revoked wait until the holder is told that its lease was revoked
//	state         read the state of an allocation
//	set-limit     set a limit, with a reason
//	watch, next   watch the changes of allocations, and take the next one
//	many          request so many allocations at once, and release them unless hold is set
//
// Outcomes of acquire are granted, denied with neverFits and violations, timed-out, unavailable, and failed with the
// code and reason of the error. The last two say mayBeDone: whether the request may have been carried out. "ID" in the
// script is replaced, so that no two runs share an id. A lost lease says earlyMs: how long before its earliest possible
// end at the servers the holder was told.
//
// The first argument of a player is the list of servers, separated by commas. A line with unsupported as the outcome
// skips the scenario for that player, with the reason.
package scenarios
