// Package fsm runs the ledger as a raft state machine: it decodes log entries, applies them, writes and reads
// snapshots, and gives readers access to the ledger.
//
// It adapts formats and concurrency only; package ledger decides what a command means. See DESIGN.md.
package fsm
