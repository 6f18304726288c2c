package cluster

import (
	"errors"
	"fmt"
)

// Reason classifies an Error. The list is closed; package rpc maps each reason to one code.
type Reason uint8

// All reasons.
const (
	// NoLeader: there is no leader, or none that this node knows.
	NoLeader Reason = iota + 1
	// NotLeader: this node does not lead; Error.Leader names the leader if it is known.
	NotLeader
	// LeadershipLost: this node led when the request arrived and does not lead any more.
	LeadershipLost
	// Halted: this node detected a fault in itself and does not serve until it is restarted.
	Halted
	// ShuttingDown: this node is shutting down.
	ShuttingDown
	// Overloaded: too many requests are waiting.
	Overloaded
	// Deadline: the caller's context ended first.
	Deadline
	// TooLarge: a single command does not fit into a log entry.
	TooLarge
	// NotUpgraded: a member might not understand the command.
	NotUpgraded
	// Forgotten: the events after a position are no longer kept.
	Forgotten
	// DiskFull: the leader's disk has no space for commands that make the ledger grow.
	DiskFull
	// Unsafe: the membership change would endanger the cluster or does not apply to that member, or a restore would raise
	// the feature level without confirmation.
	Unsafe
	// UnknownMember: there is no member with that id.
	UnknownMember
	// Busy: another operation must end first.
	Busy
	// Damaged: a backup is corrupt or was not written by this software.
	Damaged
)

// String returns the stable code of the reason.
func (r Reason) String() string {
	names := [...]string{
		"", "NO_LEADER", "NOT_LEADER", "LEADERSHIP_LOST", "HALTED", "SHUTTING_DOWN", "OVERLOADED",
		"DEADLINE", "TOO_LARGE",
		"NOT_UPGRADED", "FORGOTTEN", "DISK_FULL", "UNSAFE", "UNKNOWN_MEMBER", "BUSY", "DAMAGED",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return "UNKNOWN"
}

// Error is the error type of Propose, Read, ReadFeed, ReadIndex, WaitLeader, Ready, Save, Restore and the membership
// changes.
type Error struct {
	Reason Reason
	// NotApplied is true if the request certainly had no effect and never will, so that it may be retried even under a new
	// id. If it is false, the outcome is unknown: retry with the same id.
	NotApplied bool
	// Leader is the id of the node to ask instead; empty if unknown.
	Leader string
	// Text names the object, the rule and what to do about it.
	Text string
	// Cause is the underlying error, if there is one.
	Cause error
}

// Error returns the text, followed by the cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ReasonOf returns the reason of an error of this package, 0 for any other error.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return 0
}

func newError(reason Reason, notApplied bool, cause error, format string, args ...any) *Error {
	return &Error{Reason: reason, NotApplied: notApplied, Cause: cause, Text: fmt.Sprintf(format, args...)}
}
