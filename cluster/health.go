package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// probeInterval is how often a leader looks after the members, and probeTimeout how long one may take to answer.
	probeInterval = time.Second
	probeTimeout  = time.Second
	// maxTrailing is how many entries a member in good health may be behind.
	maxTrailing = 1000
)

// PeerClient is how a node asks the others over their API. A test or package rpc provides it.
type PeerClient interface {
	// Status asks a node how it stands.
	Status(ctx context.Context, m Member) (NodeStatus, error)
	// Notify tells a node about its place.
	Notify(ctx context.Context, m Member, notice Notice) error
}

// SetPeerClient sets how other nodes are asked. Without it a leader takes all others for unhealthy.
func (n *Node) SetPeerClient(c PeerClient) { n.peerClient.Store(&c) }

// Role is what a node is in raft's configuration.
type Role uint8

// The seats.
const (
	// RoleVoter counts for majorities.
	RoleVoter Role = iota + 1
	// RoleNonVoter receives the log and has no vote.
	RoleNonVoter
	// RoleWaiting has no state yet and waits to be taken in.
	RoleWaiting
	// RoleNone is no member and has state of its own: it was removed, or comes from another cluster.
	RoleNone
)

// HealthCheck is what a leader found when it last looked after a node.
type HealthCheck struct {
	// Answered tells whether the node said how it stands; Standing is what it said.
	Answered bool
	Status   NodeStatus
	// Healthy tells whether it could take part in decisions, and Since from when on it could without a break; zero if it
	// cannot. A new leader begins to count anew.
	Healthy      bool
	HealthySince time.Time
	// LastHeard is when there was the last sign of life: an answer, or gossip.
	LastHeard time.Time
	// Trailing is how many entries it is behind.
	Trailing uint64
	// ClockOffset is how far its wall clock is ahead of this node's.
	ClockOffset time.Duration
	// Problem is why it is not healthy.
	Problem string
}

// NodeHealth is a node, its seat, and its latest checkup.
type NodeHealth struct {
	Member
	HealthCheck

	Role Role
}

// healthTable keeps the checkups of one leadership.
type healthTable struct {
	mu         *sync.Mutex
	checks     map[string]HealthCheck
	firstProbe chan struct{} // closed after the first round
}

func newHealthTable() healthTable {
	return healthTable{mu: &sync.Mutex{}, checks: map[string]HealthCheck{}, firstProbe: make(chan struct{})}
}

func (w *healthTable) replaceAll(found map[string]HealthCheck) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks = found
	select {
	case <-w.firstProbe:
	default:
		close(w.firstProbe)
	}
}

func (w *healthTable) latestCheck(id string) HealthCheck {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checks[id]
}

// Health returns all nodes by id, as the leader found them within about the last two seconds. Only the leader can; the
// error is an *Error.
func (n *Node) Health(ctx context.Context) ([]NodeHealth, error) {
	l := n.leadership.Load()
	if l == nil {
		return nil, n.notLeaderError()
	}
	if err := l.awaitFirstProbe(ctx); err != nil {
		return nil, err
	}
	return l.listHealth(), nil
}

func (l *leadership) awaitFirstProbe(ctx context.Context) error {
	select {
	case <-l.healthTable.firstProbe:
		return nil
	case <-l.ctx.Done():
		return l.leadershipLostError(nil)
	case <-ctx.Done():
		return newError(Deadline, true, ctx.Err(), "the leader has not looked after the members yet")
	}
}

// listHealth joins the configuration of this moment with the latest checkups.
func (l *leadership) listHealth() []NodeHealth {
	var list []NodeHealth
	servers := l.node.servers()
	for _, m := range l.node.Members() {
		h := NodeHealth{Member: m, HealthCheck: l.healthTable.latestCheck(m.ID)}
		switch known := slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == m.ID }); {
		case m.Voter:
			h.Role = RoleVoter
		case known:
			h.Role = RoleNonVoter
		case h.Status.Instance != "":
			h.Role = RoleWaiting
		default:
			h.Role = RoleNone
		}
		list = append(list, h)
	}
	return list
}

// probeAll asks all nodes at once. Nodes that were not asked this time keep what was found before.
func (l *leadership) probeAll() {
	members := l.node.Members()
	results := make([]HealthCheck, len(members))
	for i, m := range members {
		results[i] = l.healthTable.latestCheck(m.ID)
	}
	last := l.node.raft.LastIndex()
	l.node.queryMembers(l.ctx, members, func(i int, sent time.Time, standing NodeStatus, err error) {
		results[i] = l.evaluateProbe(members[i], last, sent, standing, err)
	})
	if l.ctx.Err() != nil {
		return
	}
	found := map[string]HealthCheck{}
	for i, m := range members {
		found[m.ID] = results[i]
	}
	l.healthTable.replaceAll(found)
}

// evaluateProbe judges what a node answered to a question that was sent at a time, when the leader's log ended at last.
func (l *leadership) evaluateProbe(m Member, last uint64, sent time.Time, standing NodeStatus, err error) HealthCheck {
	before := l.healthTable.latestCheck(m.ID)
	c := HealthCheck{LastHeard: before.LastHeard}
	if c.LastHeard.IsZero() {
		c.LastHeard = l.startedAt
	}
	if m.Alive || err == nil {
		c.LastHeard = time.Now()
	}
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Answered, c.Status = true, standing
	if standing.Wall != 0 { // versions before 0.5 do not say
		c.ClockOffset = time.UnixMilli(standing.Wall).Sub(sent.Add(time.Since(sent) / 2).Round(0)).Truncate(time.Millisecond)
	}
	if last > standing.LastIndex {
		c.Trailing = last - standing.LastIndex
	}
	if c.Problem = l.findProblem(c); c.Problem != "" {
		return c
	}
	if c.Healthy, c.HealthySince = true, before.HealthySince; c.HealthySince.IsZero() {
		c.HealthySince = time.Now()
	}
	return c
}

// findProblem says what is wrong with a node that answered; empty if nothing is.
func (l *leadership) findProblem(c HealthCheck) string {
	switch s := c.Status; {
	case s.Instance != "":
		return s.ID + " has no data and waits until it is taken in"
	case s.Problem != "":
		return s.Problem
	case s.Term != l.term:
		return fmt.Sprintf("%s is in term %d, the leader in %d", s.ID, s.Term, l.term)
	case c.Trailing > maxTrailing:
		return fmt.Sprintf("%s is %d entries behind", s.ID, c.Trailing)
	}
	return ""
}

// voters are those of a list that count for majorities.
func votersOf(list []NodeHealth) []NodeHealth {
	return slices.DeleteFunc(slices.Clone(list), func(h NodeHealth) bool { return h.Role != RoleVoter })
}

// countHealthy counts the healthy ones of a list.
func countHealthy(list []NodeHealth) (count int) {
	for _, h := range list {
		if h.Healthy {
			count++
		}
	}
	return count
}

// findNode finds a node by its id.
func findNode(list []NodeHealth, id string) (NodeHealth, bool) {
	for _, h := range list {
		if h.ID == id {
			return h, true
		}
	}
	return NodeHealth{}, false
}

// logLimiter keeps a trouble that lasts from filling the log.
type logLimiter map[string]time.Time

func (c logLimiter) shouldLog(about string) bool {
	maps.DeleteFunc(c, func(_ string, at time.Time) bool { return time.Since(at) >= reminderInterval })
	_, said := c[about]
	if !said {
		c[about] = time.Now()
	}
	return !said
}
