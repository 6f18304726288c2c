package raftguard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster/internal/repeats"
)

// repeatedMessages are those that raft logs at every attempt for as long as a member does not answer, up to ten lines a
// second for each member, or at every election timeout for as long as there is no majority or a member does not hear
// the leader. They hide every other line.
var repeatedMessages = []string{
	"failed to appendEntries to", "failed to heartbeat to", "failed to pipeline appendEntries",
	"failed to start pipeline replication to", "failed to contact", "failed to make requestVote RPC",
	"failed to send snapshot to", "target does not support pre-vote RPC, treating as granted",
	"unable to get address for server, using fallback address", "appendEntries rejected, sending older logs",
	"failed to get previous log", "previous log term mis-match",
	"heartbeat timeout reached, starting election", "Election timeout reached, restarting election",
	"entering candidate state", "pre-vote campaign failed, waiting for election timeout",
	"pre-vote successful, starting election", "duplicate requestVote for same term", "duplicate requestVote from",
}

// rejections begin the messages of a member that votes for no other: it is asked at each election timeout of that one.
var rejections = []string{"rejecting vote request", "rejecting pre-vote request"}

// memberNames are the arguments of messages that name the member that they are about.
var memberNames = []any{"peer", "server-id", "target", "from", "candidate", "id"}

// RepeatsLog is raft's log in which messages that repeat appear at once and then every minute for each member, with the
// number of those that were left out.
type RepeatsLog struct {
	hclog.Logger

	limiter *repeats.Limiter
}

// NewRepeatsLog returns a log in front of another one.
func NewRepeatsLog(log hclog.Logger) *RepeatsLog {
	return &RepeatsLog{Logger: log, limiter: &repeats.Limiter{}}
}

// Info logs what happens, unless it repeats.
func (l *RepeatsLog) Info(msg string, args ...any) {
	if args, ok := l.admit(msg, args); ok {
		l.Logger.Info(msg, args...)
	}
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
	if !isRepeated(msg) {
		return args, true
	}
	parts := []any{msg}
	for i := 0; i+1 < len(args); i += 2 {
		if slices.Contains(memberNames, args[i]) {
			parts = append(parts, args[i+1])
		}
	}
	omitted, ok := l.limiter.Admit(fmt.Sprintln(parts...))
	if omitted > 0 {
		args = append(slices.Clone(args), "repeated", omitted)
	}
	return args, ok
}

func isRepeated(msg string) bool {
	return slices.Contains(repeatedMessages, msg) ||
		slices.ContainsFunc(rejections, func(begin string) bool { return strings.HasPrefix(msg, begin) })
}
