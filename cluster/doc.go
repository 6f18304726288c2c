// Package cluster runs one node of a cluster: it replicates the ledger with raft and serves writes and reads.
//
// [Open] starts a [Node] from a [Config] and its [Parts]: log store, snapshot store, raft transport and discovery of
// peers. Because these are passed in, the same node runs on a machine (package cluster/host) and in virtual time
// (package cluster/clustertest). [Node.Propose] writes, [Node.Read] reads, [Node.Status] and [Node.Health] report, and
// [Node.AddNode], [Node.Promote], [Node.Demote], [Node.Remove] and [Node.TransferLeader] change the membership. All
// of them return an [*Error] with a [Reason].
//
// Where to look:
//
//	node.go, shutdown.go                     start, faults, stop
//	raft.go, instrumented_fsm.go             raft and the guards around its stores and transport
//	leader.go, clock.go, expire.go, civil.go one leadership: its tasks, its ledger time, expiry, civil time
//	propose.go, proposal_queue.go            writes: group commit of many callers into one log entry
//	read.go, read_batcher.go, readindex.go   linearizable and stale reads, the feed of watch events
//	autopilot.go, health.go                  what the leader does with members by itself
//	membership.go, config_change.go          what operators do with members
//	poll.go, peer_answers.go, members.go     what other nodes report, and what gossip says
//	reachability.go, status.go               readiness of this node
//	bootstrap.go, joiner.go, admission.go    forming a cluster, joining one, and whose messages are accepted
//	level.go                                 feature levels during upgrades
//	checkpoint.go, divergence.go             comparing the states of the members, quarantine
//	backup.go, restore.go, restore_input.go  snapshots, backups, restores
//
// DESIGN.md in this folder explains a leadership, a proposal, a read, a restore and the trade-offs.
package cluster
