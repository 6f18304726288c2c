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
	// probeInterval is how often a leader probes the members, probeTimeout how long a member may take to answer.
	probeInterval = time.Second
	probeTimeout  = time.Second
	// maxTrailing is the number of entries by which a healthy member may trail the leader.
	maxTrailing = 1000
)

// PeerClient queries other nodes over their API. Package rpc implements it; tests have their own.
type PeerClient interface {
	// Status queries the status of a node.
	Status(ctx context.Context, m Member) (NodeStatus, error)
	// Notify informs a node of its role in the configuration.
	Notify(ctx context.Context, m Member, notice Notice) error
}

// SetPeerClient sets the client for other nodes. Without one a leader considers all other nodes unhealthy.
func (n *Node) SetPeerClient(c PeerClient) { n.peerClient.Store(&c) }

// Role is the role of a node in raft's configuration.
type Role uint8

// All roles.
const (
	// RoleVoter counts for majorities.
	RoleVoter Role = iota + 1
	// RoleNonVoter receives the log and has no vote.
	RoleNonVoter
	// RoleWaiting is not a member, has no state and waits to be added.
	RoleWaiting
	// RoleNone is not a member and has state of its own: it was removed, or belongs to another cluster.
	RoleNone
)

// HealthCheck is the result of the leader's last probe of a node.
type HealthCheck struct {
	// Answered is true if the node answered; Status is its answer.
	Answered bool
	Status   NodeStatus
	// Healthy is true if the node could take part in decisions, and HealthySince is since when it has been so without
	// interruption; zero if it is not healthy. A new leader starts counting anew.
	Healthy      bool
	HealthySince time.Time
	// LastHeard is the time of the last sign that the node runs: an answer, or gossip.
	LastHeard time.Time
	// Trailing is the number of entries by which the node trails the leader.
	Trailing uint64
	// ClockOffset is how far the node's wall clock is ahead of this node's.
	ClockOffset time.Duration
	// CivilOffset is how far the node's wall clock is ahead of civil time; 0 while there is no civil time. ClockProblem
	// says so if it is far; empty otherwise.
	CivilOffset  time.Duration
	ClockProblem string
	// ZonesProblem says so if the node has another table of time zones than the leader; empty otherwise.
	ZonesProblem string
	// Problem is why the node is not healthy.
	Problem string

	clock clockReading
}

// NodeHealth is a node with its role and its latest health check.
type NodeHealth struct {
	Member
	HealthCheck

	Role Role
}

// healthTable holds the health checks of one leadership.
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

// Health returns all nodes sorted by id, as the leader found them within about the last two seconds. It works only on
// the leader; the error is an *Error.
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
		return newError(Deadline, true, ctx.Err(), "the leader has not probed the members yet")
	}
}

// listHealth combines the current configuration with the latest health checks.
func (l *leadership) listHealth() []NodeHealth {
	var list []NodeHealth
	servers, civil := l.node.servers(), l.node.civilOffset()
	for _, m := range l.node.Members() {
		h := NodeHealth{Member: m, HealthCheck: l.healthTable.latestCheck(m.ID)}
		if civil != 0 && !h.clock.at.IsZero() {
			h.CivilOffset = spanDuration(h.clock.offsetFrom(l.clock) - civil)
			h.ClockProblem = describeClock(h.ID, h.CivilOffset)
		}
		h.ZonesProblem = DescribeZones(h.ID, h.Status.TimeZones, l.node.config.ID, l.node.zones.Version())
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

// probeAll probes all nodes in parallel. Nodes that are skipped in this round keep their previous result.
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

// evaluateProbe turns the answer of a node into a health check. sent is when the probe was sent, last is the last index
// of the leader's log at that time.
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
	if standing.Wall != 0 {
		c.clock = clockReading{standing.Wall, sent.Add(time.Since(sent) / 2)}
		c.ClockOffset = time.UnixMilli(standing.Wall).Sub(c.clock.at.Round(0)).Truncate(time.Millisecond)
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

// findProblem returns why a node that answered is not healthy; empty if it is healthy.
func (l *leadership) findProblem(c HealthCheck) string {
	switch s := c.Status; {
	case s.Instance != "":
		return s.ID + " has no data and waits until it is admitted"
	case s.Problem != "":
		return s.Problem
	case s.Term != l.term:
		return fmt.Sprintf("%s is in term %d, the leader in %d", s.ID, s.Term, l.term)
	case c.Trailing > maxTrailing:
		return fmt.Sprintf("%s is %d entries behind", s.ID, c.Trailing)
	}
	return ""
}

// votersOf returns the voters of list.
func votersOf(list []NodeHealth) []NodeHealth {
	return slices.DeleteFunc(slices.Clone(list), func(h NodeHealth) bool { return h.Role != RoleVoter })
}

// countHealthy returns the number of healthy nodes in list.
func countHealthy(list []NodeHealth) (count int) {
	for _, h := range list {
		if h.Healthy {
			count++
		}
	}
	return count
}

// findNode returns the node with the given id.
func findNode(list []NodeHealth, id string) (NodeHealth, bool) {
	for _, h := range list {
		if h.ID == id {
			return h, true
		}
	}
	return NodeHealth{}, false
}

// logLimiter suppresses repeated log messages about the same subject.
type logLimiter map[string]time.Time

func (c logLimiter) shouldLog(about string) bool {
	maps.DeleteFunc(c, func(_ string, at time.Time) bool { return time.Since(at) >= reminderInterval })
	_, said := c[about]
	if !said {
		c[about] = time.Now()
	}
	return !said
}
