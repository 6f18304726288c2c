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
	// checkPause is how often a leader looks after the members, and checkPatience how long one may take to answer.
	checkPause    = time.Second
	checkPatience = time.Second
	// maxTrailing is how many entries a member in good health may be behind.
	maxTrailing = 1000
)

// Colleagues is how a node asks the others over their API. A test or package rpc provides it.
type Colleagues interface {
	// Standing asks a node how it stands.
	Standing(ctx context.Context, m Member) (Standing, error)
	// Notify tells a node about its place.
	Notify(ctx context.Context, m Member, notice Notice) error
}

// SetColleagues sets how other nodes are asked. Without it a leader takes all others for unhealthy.
func (n *Node) SetColleagues(c Colleagues) { n.others.Store(&c) }

// Seat is what a node is in raft's configuration.
type Seat uint8

// The seats.
const (
	// SeatVoter counts for majorities.
	SeatVoter Seat = iota + 1
	// SeatNonVoter receives the log and has no vote.
	SeatNonVoter
	// SeatWaiting has no state yet and waits to be taken in.
	SeatWaiting
	// SeatNone is no member and has state of its own: it was removed, or comes from another cluster.
	SeatNone
)

// Checkup is what a leader found when it last looked after a node.
type Checkup struct {
	// Answers tells whether the node said how it stands; Standing is what it said.
	Answers  bool
	Standing Standing
	// Healthy tells whether it could take part in decisions, and Since from when on it could without a break; zero if it
	// cannot. A new leader begins to count anew.
	Healthy bool
	Since   time.Time
	// Heard is when there was the last sign of life: an answer, or gossip.
	Heard time.Time
	// Trailing is how many entries it is behind.
	Trailing uint64
	// Offset is how far its wall clock is ahead of this node's.
	Offset time.Duration
	// Problem is why it is not healthy.
	Problem string
}

// Health is a node, its seat, and its latest checkup.
type Health struct {
	Member
	Checkup

	Seat Seat
}

// ward keeps the checkups of one leadership.
type ward struct {
	mu       *sync.Mutex
	checkups map[string]Checkup
	first    chan struct{} // closed after the first round
}

func newWard() ward {
	return ward{mu: &sync.Mutex{}, checkups: map[string]Checkup{}, first: make(chan struct{})}
}

func (w *ward) keep(found map[string]Checkup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkups = found
	select {
	case <-w.first:
	default:
		close(w.first)
	}
}

func (w *ward) of(id string) Checkup {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checkups[id]
}

// Health returns all nodes by id, as the leader found them within about the last two seconds. Only the leader can; the
// error is an *Error.
func (n *Node) Health(ctx context.Context) ([]Health, error) {
	l := n.life.Load()
	if l == nil {
		return nil, n.refuseToLead()
	}
	if err := l.awaitFirst(ctx); err != nil {
		return nil, err
	}
	return l.health(), nil
}

func (l *life) awaitFirst(ctx context.Context) error {
	select {
	case <-l.ward.first:
		return nil
	case <-l.ctx.Done():
		return l.lost(nil)
	case <-ctx.Done():
		return failure(Deadline, true, ctx.Err(), "the leader has not looked after the members yet")
	}
}

// health joins the configuration of this moment with the latest checkups.
func (l *life) health() []Health {
	var list []Health
	servers := l.node.servers()
	for _, m := range l.node.Members() {
		h := Health{Member: m, Checkup: l.ward.of(m.ID)}
		switch known := slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == m.ID }); {
		case m.Voter:
			h.Seat = SeatVoter
		case known:
			h.Seat = SeatNonVoter
		case h.Standing.Instance != "":
			h.Seat = SeatWaiting
		default:
			h.Seat = SeatNone
		}
		list = append(list, h)
	}
	return list
}

// examine asks all nodes at once. Nodes that were not asked this time keep what was found before.
func (l *life) examine() {
	members := l.node.Members()
	results := make([]Checkup, len(members))
	for i, m := range members {
		results[i] = l.ward.of(m.ID)
	}
	last := l.node.raft.LastIndex()
	l.node.askAll(l.ctx, members, func(i int, sent time.Time, standing Standing, err error) {
		results[i] = l.check(members[i], last, sent, standing, err)
	})
	if l.ctx.Err() != nil {
		return
	}
	found := map[string]Checkup{}
	for i, m := range members {
		found[m.ID] = results[i]
	}
	l.ward.keep(found)
}

// check judges what a node answered to a question that was sent at a time, when the leader's log ended at last.
func (l *life) check(m Member, last uint64, sent time.Time, standing Standing, err error) Checkup {
	before := l.ward.of(m.ID)
	c := Checkup{Heard: before.Heard}
	if c.Heard.IsZero() {
		c.Heard = l.began
	}
	if m.Alive || err == nil {
		c.Heard = time.Now()
	}
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Answers, c.Standing = true, standing
	if standing.Wall != 0 { // versions before 0.5 do not say
		c.Offset = time.UnixMilli(standing.Wall).Sub(sent.Add(time.Since(sent) / 2).Round(0)).Truncate(time.Millisecond)
	}
	if last > standing.LastIndex {
		c.Trailing = last - standing.LastIndex
	}
	if c.Problem = l.diagnose(c); c.Problem != "" {
		return c
	}
	if c.Healthy, c.Since = true, before.Since; c.Since.IsZero() {
		c.Since = time.Now()
	}
	return c
}

// diagnose says what is wrong with a node that answered; empty if nothing is.
func (l *life) diagnose(c Checkup) string {
	switch s := c.Standing; {
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
func votersOf(list []Health) []Health {
	return slices.DeleteFunc(slices.Clone(list), func(h Health) bool { return h.Seat != SeatVoter })
}

// healthyOf counts the healthy ones of a list.
func healthyOf(list []Health) (count int) {
	for _, h := range list {
		if h.Healthy {
			count++
		}
	}
	return count
}

// seatOf finds a node by its id.
func seatOf(list []Health, id string) (Health, bool) {
	for _, h := range list {
		if h.ID == id {
			return h, true
		}
	}
	return Health{}, false
}

// complaints keeps a trouble that lasts from filling the log.
type complaints map[string]time.Time

func (c complaints) due(about string) bool {
	maps.DeleteFunc(c, func(_ string, at time.Time) bool { return time.Since(at) >= bootstrapRemind })
	_, said := c[about]
	if !said {
		c[about] = time.Now()
	}
	return !said
}
