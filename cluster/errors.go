package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Reason says why a node could not do what it was asked. The list is closed; rpc maps each reason to one code.
type Reason uint8

// The closed list of reasons.
const (
	// NoLeader: nobody leads at the moment, or nobody known to this node.
	NoLeader Reason = iota + 1
	// NotLeader: this node does not lead; Error.Leader says who does, if known.
	NotLeader
	// LeadershipLost: this node led when it was asked and does not any more.
	LeadershipLost
	// Halted: this node found a fault in itself and serves nothing until it is started again.
	Halted
	// ShuttingDown: this node is on its way out.
	ShuttingDown
	// Overloaded: too much is waiting here already.
	Overloaded
	// Deadline: the caller's context ended first.
	Deadline
	// TooLarge: a command alone is larger than a log entry may be.
	TooLarge
	// NotUpgraded: a member might not understand the command.
	NotUpgraded
	// Forgotten: the facts behind a position are not remembered here any more.
	Forgotten
	// DiskFull: the leader's disk has no room for what makes the ledger grow.
	DiskFull
	// Unsafe: the change of the membership would endanger the cluster, or makes no sense for that member; or a restore would
	// raise the feature level, and nobody has confirmed that.
	Unsafe
	// UnknownMember: no member has that id.
	UnknownMember
	// Busy: something is under way that must end first.
	Busy
	// Damaged: a backup is not what was written, or not of this software.
	Damaged
)

// String is the reason's stable code.
func (r Reason) String() string {
	names := [...]string{
		"", "NO_LEADER", "NOT_LEADER", "LEADERSHIP_LOST", "HALTED", "SHUTTING_DOWN", "OVERLOADED", "DEADLINE", "TOO_LARGE",
		"NOT_UPGRADED", "FORGOTTEN", "DISK_FULL", "UNSAFE", "UNKNOWN_MEMBER", "BUSY", "DAMAGED",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return "UNKNOWN"
}

// Error is the only error that Propose, Read, News, ReadIndex, WaitLeader, Ready, Save, Restore and the changes of the
// membership return.
type Error struct {
	Reason Reason
	// NotApplied is true if what was asked certainly did not happen and never will, so that a retry is safe even under
	// a new id. If it is false the outcome is unknown: retry with the same id.
	NotApplied bool
	// Leader is the id of the node to ask instead; empty if unknown.
	Leader string
	// Text names the thing, the rule and the way out.
	Text string
	// Cause is the accident below, if there is one.
	Cause error
}

// Error is the text, with the cause behind it.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

// Unwrap gives the accident below.
func (e *Error) Unwrap() error { return e.Cause }

// ReasonOf finds the reason of an error of this package; 0 if it is none.
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

// notAppliedReasons are raft's errors for what it certainly did not take. Every other error leaves the outcome open, even one
// from storing the entry: a part of it may be on disk and come back after a restart.
var notAppliedReasons = map[error]Reason{
	raft.ErrNotLeader:                    NotLeader,
	raft.ErrLeadershipTransferInProgress: LeadershipLost,
	raft.ErrEnqueueTimeout:               Overloaded,
}

// applyError maps an error of raft's apply path.
func (n *Node) applyError(err error) *Error {
	for sentinel, reason := range notAppliedReasons {
		if errors.Is(err, sentinel) {
			e := newError(reason, true, err, "the entry was not taken; try again")
			e.Leader = n.leaderID()
			return e
		}
	}
	if errors.Is(err, raft.ErrRaftShutdown) {
		return newError(ShuttingDown, false, err, "node %s stopped meanwhile; retry with the same id", n.config.ID)
	}
	e := newError(LeadershipLost, false, err,
		"node %s lost the leadership before the entry was confirmed; it may still take effect: retry with the same id", n.config.ID)
	e.Leader = n.leaderID()
	return e
}
