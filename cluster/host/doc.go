// Package host gives a node what a machine has: a data folder, TCP and gossip. The node itself knows none of them.
//
// A data folder holds:
//
//	identity.json      whose folder it is
//	raft.db            raft's log, its votes and its term
//	snapshots/         the newest snapshots of the ledger
//	snapshots-corrupt/ snapshots that were found damaged and could be replaced; keep for inquiry, or remove
package host
