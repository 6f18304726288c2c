package raftguard

import (
	"fmt"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster/internal/repeats"
)

// repeatedMessages are those that raft logs at every attempt for as long as a member does not answer: up to ten lines a
// second for each member, which hides every other line.
var repeatedMessages = []string{
	"failed to appendEntries to", "failed to heartbeat to", "failed to pipeline appendEntries",
	"failed to start pipeline replication to", "failed to contact", "failed to make requestVote RPC",
}

// RepeatsLog is raft's log in which messages about a member that does not answer appear at once and then every minute,
// with the number of those that were left out.
type RepeatsLog struct {
	hclog.Logger

	limiter *repeats.Limiter
}

// NewRepeatsLog returns a log in front of another one.
func NewRepeatsLog(log hclog.Logger) *RepeatsLog {
	return &RepeatsLog{Logger: log, limiter: &repeats.Limiter{}}
}

// Warn logs a warning, unless it repeats.
func (l *RepeatsLog) Warn(msg string, args ...any) {
	if args, ok := l.admit(msg, args); ok {
		l.Logger.Warn(msg, args...)
	}
}

// Error logs an error, unless it repeats.
func (l *RepeatsLog) Error(msg string, args ...any) {
	if args, ok := l.admit(msg, args); ok {
		l.Logger.Error(msg, args...)
	}
}

// admit returns the arguments with which a message is logged now; false if it is left out.
func (l *RepeatsLog) admit(msg string, args []any) ([]any, bool) {
	if !slices.Contains(repeatedMessages, msg) {
		return args, true
	}
	parts := []any{msg}
	for i := 0; i+1 < len(args); i += 2 {
		if name := args[i]; name == "peer" || name == "server-id" || name == "target" {
			parts = append(parts, args[i+1])
		}
	}
	omitted, ok := l.limiter.Admit(fmt.Sprintln(parts...))
	if omitted > 0 {
		args = append(slices.Clone(args), "repeated", omitted)
	}
	return args, ok
}
