package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// unreachableAfter is how long all queries to a member must have failed until it counts as unreachable. Shorter
	// failures happen when the leader changes, and are retried.
	unreachableAfter = 5 * time.Second
	// unreachableMemory is how long a member that is not queried again counts as unreachable.
	unreachableMemory = 15 * time.Second
	// unreachableReminder is how often the log repeats that a member is unreachable.
	unreachableReminder = 10 * time.Minute
	// leaderProbeInterval is how often a follower without reads sends a query to its leader.
	leaderProbeInterval = 2 * time.Second
)

// reachability tracks which members do not answer one kind of query. Raft may still reach such a member, because
// queries use other connections.
type reachability struct {
	scale time.Duration
	log   hclog.Logger
	fault string // what the log says of a member that does not answer

	mu       sync.Mutex
	answered map[string]time.Time // the last answer of each member
	failing  map[string]*failingMember
}

// failingMember is a member whose queries have all failed since a certain time.
type failingMember struct {
	since, latest time.Time
	err           error
	logged        time.Time
}

func newReachability(c Config, fault string) *reachability {
	return &reachability{
		scale: time.Duration(c.TimeoutScale), log: c.Logger.Named("cluster"), fault: fault,
		answered: map[string]time.Time{}, failing: map[string]*failingMember{},
	}
}

// recordResult records the result of a query to a member.
func (r *reachability) recordResult(id string, err error) {
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
	if now.Sub(f.since) >= r.scale*unreachableAfter && (f.logged.IsZero() || now.Sub(f.logged) >= unreachableReminder) {
		r.log.Warn("a member "+r.fault, "member", id, "for", now.Sub(f.since).Round(time.Second), "error", err)
		f.logged = now
	}
}

// unreachableFor returns how long all queries to a member have failed, and the last error; 0 if the last query was
// answered, or if there was none recently.
func (r *reachability) unreachableFor(id string) (since time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, now := r.failing[id], time.Now()
	if f == nil || now.Sub(f.latest) > r.scale*unreachableMemory {
		return 0, nil
	}
	return now.Sub(f.since), f.err
}

// answeredSince reports whether a member has answered within span.
func (r *reachability) answeredSince(id string, span time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.answered[id]) < span
}

// retainMembers forgets all other members.
func (r *reachability) retainMembers(members map[string]bool) {
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

// recordReachability records the result of a query to a server of raft's configuration. Other nodes come and go with
// gossip and are ignored.
func (n *Node) recordReachability(to *reachability, id string, err error) {
	if n.ctx.Err() == nil && n.serverIDs()[id] {
		to.recordResult(id, err)
	}
}

func (n *Node) serverIDs() map[string]bool {
	ids := map[string]bool{}
	for _, s := range n.servers() {
		ids[string(s.ID)] = true
	}
	return ids
}

// probeLeader queries the leader while there are no reads, so that a follower that cannot serve reads detects it before
// its callers do.
func (n *Node) probeLeader() {
	for sleepContext(n.ctx, n.config.scaleTimeout(leaderProbeInterval)) {
		n.statusReachability.retainMembers(n.serverIDs())
		n.readReachability.retainMembers(n.serverIDs())
		leader, known := n.Leader()
		if !known || leader.ID == n.config.ID || n.remoteReadIndex.Load() == nil ||
			n.readReachability.answeredSince(leader.ID, n.config.scaleTimeout(leaderProbeInterval)) {
			continue
		}
		_, _ = n.requestReadIndex() // requestReadIndex records the result
	}
}

// checkLeaderReachable returns an error if this node follows a leader that has answered none of its queries for some
// time.
func (n *Node) checkLeaderReachable(leader Member) error {
	since, err := n.readReachability.unreachableFor(leader.ID)
	if leader.ID == n.config.ID || since < n.config.scaleTimeout(unreachableAfter) {
		return nil
	}
	return newError(NoLeader, true, err, "node %s cannot confirm reads with leader %s for %v: %v",
		n.config.ID, leader.ID,
		since.Round(time.Second), err)
}
