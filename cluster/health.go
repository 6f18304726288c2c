package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/cluster/recurrence"
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
func (n *Node) SetPeerClient(c PeerClient) { n.poller.client.Store(&c) }

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

type prober struct {
	self      string
	ctx       context.Context //nolint:containedctx // that of the leadership
	term      uint64
	startedAt time.Time
	raft      *raft.Raft
	clock     *ledgerClock
	zones     *recurrence.Zones
	times     *timeSource
	roster    *peers.Roster
	leader    *leaderFinder
	poller    *poller
	table     healthTable
}

type healthTable struct {
	mu         sync.Mutex
	checks     map[string]HealthCheck
	firstProbe chan struct{} // closed after the first round
}

func (t *healthTable) replaceAll(found map[string]HealthCheck) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checks = found
	select {
	case <-t.firstProbe:
	default:
		close(t.firstProbe)
	}
}

func (t *healthTable) latestCheck(id string) HealthCheck {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checks[id]
}

// Health returns all nodes sorted by id, as the leader found them within about the last two seconds. It works only on
// the leader; the error is an *Error.
func (n *Node) Health(ctx context.Context) ([]NodeHealth, error) {
	l := n.leader.own.Load()
	if l == nil {
		return nil, n.leader.notLeaderError()
	}
	if err := l.health.awaitFirstProbe(ctx); err != nil {
		return nil, err
	}
	return l.health.list(), nil
}

func (p *prober) awaitFirstProbe(ctx context.Context) error {
	select {
	case <-p.table.firstProbe:
		return nil
	case <-p.ctx.Done():
		return p.leader.leadershipLostError(nil)
	case <-ctx.Done():
		return newError(Deadline, true, ctx.Err(), "the leader has not probed the members yet")
	}
}

func (p *prober) list() []NodeHealth {
	var list []NodeHealth
	servers, civil := p.roster.Servers(), p.times.civilOffset()
	for _, m := range p.roster.Members() {
		h := NodeHealth{Member: m, HealthCheck: p.table.latestCheck(m.ID)}
		if civil != 0 && !h.clock.at.IsZero() {
			h.CivilOffset = spanDuration(h.clock.offsetFrom(p.clock) - civil)
			h.ClockProblem = describeClock(h.ID, h.CivilOffset)
		}
		h.ZonesProblem = DescribeZones(h.ID, h.Status.TimeZones, p.self, p.zones.Version())
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

// probeAll keeps the previous result of the nodes that it skips in this round.
func (p *prober) probeAll() {
	members := p.roster.Members()
	results := make([]HealthCheck, len(members))
	for i, m := range members {
		results[i] = p.table.latestCheck(m.ID)
	}
	last := p.raft.LastIndex()
	p.poller.queryAll(p.ctx, members, func(i int, sent time.Time, standing NodeStatus, err error) {
		results[i] = p.evaluateProbe(members[i], last, sent, standing, err)
	})
	if p.ctx.Err() != nil {
		return
	}
	found := map[string]HealthCheck{}
	for i, m := range members {
		found[m.ID] = results[i]
	}
	p.table.replaceAll(found)
}

// evaluateProbe turns the answer of a node into a health check. sent is when the probe was sent, last is the last index
// of the leader's log at that time.
func (p *prober) evaluateProbe(m Member, last uint64, sent time.Time, standing NodeStatus, err error) HealthCheck {
	before := p.table.latestCheck(m.ID)
	c := HealthCheck{LastHeard: before.LastHeard}
	if c.LastHeard.IsZero() {
		c.LastHeard = p.startedAt
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
	if c.Problem = p.findProblem(c); c.Problem != "" {
		return c
	}
	if c.Healthy, c.HealthySince = true, before.HealthySince; c.HealthySince.IsZero() {
		c.HealthySince = time.Now()
	}
	return c
}

// findProblem is empty if the node is healthy.
func (p *prober) findProblem(c HealthCheck) string {
	switch s := c.Status; {
	case s.Instance != "":
		return s.ID + " has no data and waits until it is admitted"
	case s.Problem != "":
		return s.Problem
	case s.Term != p.term:
		return fmt.Sprintf("%s is in term %d, the leader in %d", s.ID, s.Term, p.term)
	case c.Trailing > maxTrailing:
		return fmt.Sprintf("%s is %d entries behind", s.ID, c.Trailing)
	}
	return ""
}

func (p *prober) findMember(id string) (NodeHealth, error) {
	if h, _ := findNode(p.list(), id); h.Role == RoleVoter || h.Role == RoleNonVoter {
		return h, nil
	}
	return NodeHealth{}, newError(UnknownMember, true, nil, "the cluster has no member %q; `quorate member list` "+
		"shows all", id)
}

func votersOf(list []NodeHealth) []NodeHealth {
	return slices.DeleteFunc(slices.Clone(list), func(h NodeHealth) bool { return h.Role != RoleVoter })
}

func countHealthy(list []NodeHealth) (count int) {
	for _, h := range list {
		if h.Healthy {
			count++
		}
	}
	return count
}

func findNode(list []NodeHealth, id string) (NodeHealth, bool) {
	for _, h := range list {
		if h.ID == id {
			return h, true
		}
	}
	return NodeHealth{}, false
}

type logLimiter map[string]time.Time

func (c logLimiter) shouldLog(about string) bool {
	maps.DeleteFunc(c, func(_ string, at time.Time) bool { return time.Since(at) >= reminderInterval })
	_, said := c[about]
	if !said {
		c[about] = time.Now()
	}
	return !said
}
