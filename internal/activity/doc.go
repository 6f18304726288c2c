// Package activity records what happened on one server in the last 24 hours: for each node of a tree and each itemized
// resource, in steps of five minutes. It exports the same as Prometheus metrics.
//
// A [Recorder] has two sources. It follows the events of the node, and counts each one in the step of its time. It
// takes samples of the ledger, every ten seconds and when Series is called, for how many claims are held and wait. The
// records are in memory, bounded, and start empty with the process: they are for people to look at, and no decision
// depends on them.
package activity
