// Package cluster runs one node: it keeps a ledger equal with its peers through raft, and answers writes and reads.
//
// Everything that a node is made of (disk, network, discovery of peers) comes in as [Parts], so that the same node runs
// on a machine (package cluster/host) and in virtual time (package cluster/clustertest).
//
// DESIGN.md beside this file tells the life of a leader, of a proposal and of a read.
package cluster
