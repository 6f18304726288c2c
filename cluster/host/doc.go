// Package host runs a node on a machine: with a data folder, a raft port and gossip.
//
// [OpenSecured] opens a node and [Open] one without encryption; both call [OpenParts], which builds the
// [cluster.Parts]. The data folder is opened in folder.go, the raft port, which raft shares with the RPCs between
// nodes, in listener.go and connections.go. [NewObserver] and [RegisterGauges] export metrics. [Recover],
// [ComputeDigests], [LiftQuarantine] and [StartOver] work on the data folder of a stopped node.
//
// A data folder contains:
//
//	identity.json      the node and the cluster that the folder belongs to
//	raft.db            the votes and the term of raft, which log store the node has, and the log if that is "bolt"
//	wal/               raft's log if the log store is "wal"
//	snapshots/         the newest snapshots of the ledger
//	snapshots-corrupt/ corrupt snapshots that could be replaced; keep them for analysis, or remove them
//	set-aside-1/ to 9  the remains of a folder that had lost a part; remove them once the node serves again
//	lock               prevents a second server from using the folder
package host
