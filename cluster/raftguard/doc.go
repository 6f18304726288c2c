// Package raftguard works around the known bugs of hashicorp/raft: it wraps raft's transport and stores so that each
// bug is prevented, detected or repaired.
//
// Before raft starts: [Prepare] verifies and repairs a data folder; [CheckHistory] detects lost state.
//
// Around the log store: [Checksum], [DiskLatency], [FailStopStore]. Around the snapshot store: [RecordedSnapshots],
// [MonotonicSnapshots], [Watchdog]. Around the transport: [Transport] and, on a node without state, [JoinGate].
//
// Package cluster assembles them in startRaft. DESIGN.md in this folder lists every bug, what the guard does, why that
// is safe, and what would let us remove it. The negative controls in this package (control_*_test.go) reproduce each
// bug without its guard, so that a guard that is no longer needed is noticed.
package raftguard
