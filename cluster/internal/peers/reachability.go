package peers

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// UnreachableAfter is how long all queries to a member must have failed until it counts as unreachable. Shorter
	// failures happen when the leader changes, and are retried.
	UnreachableAfter = 5 * time.Second
	// unreachableMemory is how long a member that is not queried again counts as unreachable.
	unreachableMemory = 15 * time.Second
	// unreachableReminder is how often the log repeats that a member is unreachable.
	unreachableReminder = 10 * time.Minute
)

// Reachability tracks which members do not answer one kind of query. Raft may still reach such a member, because
// queries use other connections.
type Reachability struct {
	scale time.Duration
	log   hclog.Logger
	fault string // what the log says of a member that does not answer

	mu       sync.Mutex
	answered map[string]time.Time // the last answer of each member
	failing  map[string]*failingMember
}

type failingMember struct {
	since, latest time.Time
	err           error
	logged        time.Time
}

// NewReachability tracks queries whose timeouts are multiplied by scale. fault is what the log says of a member that
// does not answer.
func NewReachability(scale int, log hclog.Logger, fault string) *Reachability {
	return &Reachability{
		scale: time.Duration(scale), log: log, fault: fault,
		answered: map[string]time.Time{}, failing: map[string]*failingMember{},
	}
}

// Record records the result of a query to a member.
func (r *Reachability) Record(id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	f := r.failing[id]
	if err == nil {
		if f != nil && !f.logged.IsZero() {
			r.log.Info("a member answers again", "member", id, "before", "it "+r.fault, "for",
				now.Sub(f.since).Round(time.Second))
		}
		delete(r.failing, id)
		r.answered[id] = now
		return
	}
	if f == nil || now.Sub(f.latest) > r.scale*unreachableMemory {
		f = &failingMember{since: now}
		r.failing[id] = f
	}
	f.latest, f.err = now, err
	if now.Sub(f.since) >= r.scale*UnreachableAfter && (f.logged.IsZero() || now.Sub(f.logged) >= unreachableReminder) {
		r.log.Warn("a member does not answer", "member", id, "fault", "it "+r.fault, "for",
			now.Sub(f.since).Round(time.Second), "error", err)
		f.logged = now
	}
}

// UnreachableFor returns how long all queries to a member have failed, and the last error; 0 if the last query was
// answered, or if there was none recently.
func (r *Reachability) UnreachableFor(id string) (since time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, now := r.failing[id], time.Now()
	if f == nil || now.Sub(f.latest) > r.scale*unreachableMemory {
		return 0, nil
	}
	return now.Sub(f.since), f.err
}

// AnsweredSince reports whether a member has answered within span.
func (r *Reachability) AnsweredSince(id string, span time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.answered[id]) < span
}

// Retain forgets all other members.
func (r *Reachability) Retain(members map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.answered {
		if !members[id] {
			delete(r.answered, id)
		}
	}
	for id := range r.failing {
		if !members[id] {
			delete(r.failing, id)
		}
	}
}
