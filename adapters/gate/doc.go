// Package gate is the loop of an adapter that keeps work closed in a scheduler until Quorate grants what it needs.
//
// A scheduler has work that it does not start while a gate is closed: pods with a scheduling gate, held jobs. A
// [Source] lists that work, opens the gate of a member, says why it waits, and ends it. The [Loop] asks Quorate for one
// allocation for each work, in the queue, opens the gates when it is granted, and releases it when all members have
// ended. [Decide] is the pure function from what both sides say to what is to be done; everything else carries it out.
//
// The loop keeps no state of its own. What it must know after a restart is in the scheduler (which gates are open) and
// in Quorate (ids that begin with the prefix of the adapter). It may be killed between any two calls:
//
//   - A gate is opened only after a grant, and only as far as the amounts of the grant reach.
//   - An allocation is released only after its members have ended, which the scheduler itself must say: a list that
//     lags must not free what runs.
//   - What runs without an allocation asks once for one that fits at once, and is evicted if it does not get it.
//   - Every call can be repeated. Allocations without work, and second ones for the same work, are released.
//
// While the adapter is away, what runs stays counted, and new work waits behind its gate.
package gate
