// Package host gives a node what a machine has: a data folder, TCP and gossip. The node itself knows none of them.
//
// A data folder holds:
//
//	identity.json      whose folder it is
//	raft.db            raft's log, its votes and its term
//	snapshots/         the newest snapshots of the ledger
//	snapshots-corrupt/ snapshots that were found damaged and could be replaced; keep for inquiry, or remove
//	set-aside-1/ to 9  what was left when a part of the folder had been lost; remove it once the node serves again
//	lock               keeps a second server out
package host
