package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// unreachableAfter is how long every question to a member must have failed until that counts: shorter failures belong to
	// a change of leader, and are repeated.
	unreachableAfter = 5 * time.Second
	// unreachableForget is how long a member that was not asked again is remembered as one that does not answer.
	unreachableForget = 15 * time.Second
	// unreachableRemind is how often the log says again that a member cannot be asked.
	unreachableRemind = 10 * time.Minute
	// probePause is how often a follower asks its leader, if no read does.
	probePause = 2 * time.Second
)

// reachability remembers which members do not answer one kind of question. Raft may well reach such a member, because
// questions go over other connections.
type reachability struct {
	scale time.Duration
	log   hclog.Logger
	fault string // what the log says of a member that does not answer

	mu       sync.Mutex
	answered map[string]time.Time // the last answer of each member
	failing  map[string]*failing
}

// failing is a member all of whose answers since a moment were errors.
type failing struct {
	since, latest time.Time
	err           error
	logged        time.Time
}

func newReachability(c Config, fault string) *reachability {
	return &reachability{
		scale: time.Duration(c.TimeoutScale), log: c.Logger.Named("cluster"), fault: fault,
		answered: map[string]time.Time{}, failing: map[string]*failing{},
	}
}

// note takes in how a question to a member ended.
func (r *reachability) note(id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	f := r.failing[id]
	if err == nil {
		if f != nil && !f.logged.IsZero() {
			r.log.Info("a member answers again", "member", id, "before", "it "+r.fault, "for", now.Sub(f.since).Round(time.Second))
		}
		delete(r.failing, id)
		r.answered[id] = now
		return
	}
	if f == nil || now.Sub(f.latest) > r.scale*unreachableForget {
		f = &failing{since: now}
		r.failing[id] = f
	}
	f.latest, f.err = now, err
	if now.Sub(f.since) >= r.scale*unreachableAfter && (f.logged.IsZero() || now.Sub(f.logged) >= unreachableRemind) {
		r.log.Warn("a member "+r.fault, "member", id, "for", now.Sub(f.since).Round(time.Second), "error", err)
		f.logged = now
	}
}

// unreachable tells for how long every question to a member has failed, and why the last one did; 0 if one was answered,
// or none was asked of late.
func (r *reachability) unreachable(id string) (since time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, now := r.failing[id], time.Now()
	if f == nil || now.Sub(f.latest) > r.scale*unreachableForget {
		return 0, nil
	}
	return now.Sub(f.since), f.err
}

// answeredSince tells whether a member has answered within a span.
func (r *reachability) answeredSince(id string, span time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.answered[id]) < span
}

// keep forgets all but some members.
func (r *reachability) keep(members map[string]bool) {
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

// noteAnswer remembers how a question to a server of raft's configuration ended. Others come and go by gossip.
func (n *Node) noteAnswer(to *reachability, id string, err error) {
	if n.ctx.Err() == nil && n.serverIDs()[id] {
		to.note(id, err)
	}
}

func (n *Node) serverIDs() map[string]bool {
	ids := map[string]bool{}
	for _, s := range n.servers() {
		ids[string(s.ID)] = true
	}
	return ids
}

// probeLeader asks the leader while no read does, so that a follower that cannot serve reads finds out before its callers.
func (n *Node) probeLeader() {
	for after(n.ctx, n.config.scaled(probePause)) {
		n.reach.keep(n.serverIDs())
		n.confirms.keep(n.serverIDs())
		leader, known := n.Leader()
		if !known || leader.ID == n.config.ID || n.remote.Load() == nil || n.confirms.answeredSince(leader.ID, n.config.scaled(probePause)) {
			continue
		}
		_, _ = n.askLeader() // how it ended is noted
	}
}

// canAsk is nil unless this node follows a leader that has answered none of its questions for some time.
func (n *Node) canAsk(leader Member) error {
	since, err := n.confirms.unreachable(leader.ID)
	if leader.ID == n.config.ID || since < n.config.scaled(unreachableAfter) {
		return nil
	}
	return failure(NoLeader, true, err, "node %s cannot confirm reads with leader %s for %v: %v", n.config.ID, leader.ID,
		since.Round(time.Second), err)
}
