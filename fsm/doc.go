// Package fsm puts the ledger under raft: it decodes log entries, applies them, writes and reads snapshots, and lends
// the ledger to readers.
//
// It adapts and does not think; what a command means is decided in quota. See DESIGN.md.
package fsm
