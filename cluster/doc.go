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
//	node.go, raft.go, service.go, shutdown.go how a node is put together, faults, stop
//	instrumented_fsm.go                      raft's view of the ledger
//	leader.go                                leadershipWatcher: begin and end of each leadership, its components
//	clock.go, expire.go, civil.go            one leadership: its ledger time, expiry, civil time
//	propose.go, proposal_queue.go            groupCommit: writes of many callers in one log entry
//	read.go, read_batcher.go, readindex.go   reader, leaderProof: linearizable and stale reads, the feed of watch events
//	leader_finder.go, ledger_time.go         leaderFinder, timeSource: who leads, and what time it is
//	internal/peers                           who is a member, what nodes report, what gossip says, who does not answer
//	poll.go                                  poller: asking the other nodes
//	autopilot.go, health.go, handover.go     autopilot, prober: what the leader does with members by itself
//	membership.go, config_change.go          what operators do with members; configChanger
//	status.go, readiness.go, disk.go         status, readiness and disk of this node
//	bootstrap.go, elections.go               forming a cluster, starting elections, handing the leadership over
//	joiner.go, admission.go                  joining a cluster, and whose messages are accepted
//	level.go                                 levels: feature levels during upgrades
//	checkpoint.go, divergence.go             comparison: comparing the states of the members, quarantine
//	backup.go, restore.go, restore_input.go  snapshots, backups, restores
//
// DESIGN.md in this folder explains a leadership, a proposal, a read, a restore and the trade-offs.
package cluster
