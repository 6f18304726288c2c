package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/nodes"
	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

const (
	// pollInterval is the pause between two looks at the state of the cluster.
	pollInterval = 100 * time.Millisecond
	// askTimeout bounds one call to one node.
	askTimeout = 2 * time.Second
	// Patience bounds how long a cluster without faults may take to become healthy. It is long because the machine
	// may be busy.
	Patience = 2 * time.Minute
)

// Event is one line of the timeline of a run.
type Event struct {
	At time.Time
	// Node is empty if the event concerns no node or several.
	What, Node string
}

// Span is the time of one fault, or of the healing.
type Span struct {
	Name        string
	From, Until time.Time
}

// Target is a cluster under faults. All methods are safe for concurrent use.
type Target struct {
	*nodes.Cluster
	// Binary is what the nodes run in the end. Old is the version that they run first; empty if there is none.
	Binary, Old string
	// Turnable is true if the binary has a clock that can be set.
	Turnable bool
	// Guarded is true if the cluster is guarded before the first fault.
	Guarded bool
	// Watch, if not nil, is called with each event.
	Watch func(Event)
	// GreedyToken is the token that the greedy client presents; none if empty.
	GreedyToken string

	clients []*client.Client

	mu      sync.Mutex
	events  []Event
	spans   []Span
	busy    map[int]bool
	excused map[int]int
	// wrongClocks are the nodes whose wall clock is wrong.
	wrongClocks map[int]bool
	layers      map[*linkLayer]bool
	// departures are the memberships and votes that nodes were asked to give up.
	departures map[int]departure
	// upgraded is the number of nodes, from the first on, that run Binary instead of Old.
	upgraded int
}

// NewTarget makes a target of a cluster.
func NewTarget(c *nodes.Cluster, binary string) (*Target, error) {
	t := &Target{
		Cluster: c, Binary: binary, busy: map[int]bool{}, excused: map[int]int{}, wrongClocks: map[int]bool{},
		layers: map[*linkLayer]bool{}, departures: map[int]departure{},
	}
	return t, t.SetHTTP(nil)
}

// SetHTTP sets what carries the calls of the harness to the nodes: in a guarded cluster a client that presents a token;
// nil for the default. It must not be called while faults happen.
func (t *Target) SetHTTP(carrier connect.HTTPClient) error {
	t.clients = nil
	for _, url := range t.URLs() {
		one, err := client.New([]string{url}, client.WithPatience(askTimeout), client.WithAttemptTimeout(askTimeout),
			client.WithHTTPClient(carrier))
		if err != nil {
			return err
		}
		t.clients = append(t.clients, one)
	}
	return nil
}

// Note adds a line to the timeline.
func (t *Target) Note(node int, format string, args ...any) {
	e := Event{At: time.Now(), What: fmt.Sprintf(format, args...)}
	if node >= 0 {
		e.Node = t.Nodes[node].ID
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
	if t.Watch != nil {
		t.Watch(e)
	}
}

// Events returns the timeline so far.
func (t *Target) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.events)
}

// Spans returns all faults that have ended so far, and the healing.
func (t *Target) Spans() []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.spans)
}

// addSpan adds a span that ends now.
func (t *Target) addSpan(name string, from time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, Span{name, from, time.Now()})
}

func (t *Target) nodeStatus(ctx context.Context, node int) (*adminv1.GetStatusResponse, error) {
	if !t.Nodes[node].Running() {
		return nil, fmt.Errorf("%s does not run", t.Nodes[node].ID)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return t.clients[node].Cluster.GetStatus(ctx, &adminv1.GetStatusRequest{})
}

// nodeStatuses asks concurrently. The status of a node that does not answer is nil.
func (t *Target) nodeStatuses(ctx context.Context) []*adminv1.GetStatusResponse {
	all := make([]*adminv1.GetStatusResponse, len(t.Nodes))
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			if s, err := t.nodeStatus(ctx, i); err == nil {
				all[i] = s
			}
		})
	}
	group.Wait()
	return all
}

// Leader returns the node that claims to lead in the newest term, or -1.
func (t *Target) Leader(ctx context.Context) int {
	leader, term := -1, uint64(0)
	for i, s := range t.nodeStatuses(ctx) {
		if s != nil && s.GetLeaderId() == t.Nodes[i].ID && s.GetTerm() >= term {
			leader, term = i, s.GetTerm()
		}
	}
	return leader
}

// isVoter reports whether a node that was asked about itself is a voter. A node that came back with an empty folder
// is not one for a while, and until then a cluster of three can miss no other.
func isVoter(s *adminv1.GetStatusResponse) bool {
	return s.GetMember().GetSeat() == adminv1.Seat_SEAT_VOTER
}

// Healthy returns nil if all nodes run, vote, follow one leader, report no problem, and have applied what the leader
// had.
func (t *Target) Healthy(ctx context.Context) error {
	all := t.nodeStatuses(ctx)
	leader := ""
	var applied uint64
	for i, s := range all {
		switch {
		case s == nil:
			return fmt.Errorf("%s does not answer", t.Nodes[i].ID)
		case s.GetProblem() != "":
			return fmt.Errorf("%s: %s", t.Nodes[i].ID, s.GetProblem())
		case s.GetLeaderId() == "":
			return fmt.Errorf("%s knows no leader", t.Nodes[i].ID)
		case !isVoter(s):
			return fmt.Errorf("%s has no vote yet", t.Nodes[i].ID)
		case leader != "" && s.GetLeaderId() != leader:
			return fmt.Errorf("%s follows %s, others follow %s", t.Nodes[i].ID, s.GetLeaderId(), leader)
		}
		leader = s.GetLeaderId()
		applied = max(applied, s.GetAppliedIndex())
	}
	return t.awaitApplied(ctx, applied)
}

func (t *Target) awaitApplied(ctx context.Context, index uint64) error {
	return retryUntil(ctx, Patience, func() error {
		for i, s := range t.nodeStatuses(ctx) {
			if s == nil || s.GetAppliedIndex() < index {
				return fmt.Errorf("%s has not applied entry %d", t.Nodes[i].ID, index)
			}
		}
		return nil
	})
}

// AwaitHealthy waits until the cluster is healthy. The error says what is missing after patience. It restores the
// votes that a fault could not restore because another fault prevented it.
func (t *Target) AwaitHealthy(ctx context.Context, patience time.Duration) error {
	return retryUntil(ctx, patience, func() error {
		err := t.Healthy(ctx)
		if err == nil {
			return nil
		}
		return errors.Join(err, t.restoreVotes(ctx))
	})
}

func retryUntil(ctx context.Context, patience time.Duration, try func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", patience, err)
		}
		if !Sleep(ctx, pollInterval) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// Sleep waits, and returns false if ctx ended meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

type nodeRole uint8

// All roles.
const (
	roleAny nodeRole = iota
	roleLeader
	roleFollower
)

// nodeChoice chooses a node before it is known which one leads.
type nodeChoice struct {
	role nodeRole
	dice int
}

func chooseNode(r *rand.Rand, role nodeRole) nodeChoice { return nodeChoice{role, r.IntN(1 << 16)} }

// reserveNode returns a node that fits a choice and that no other fault has reserved, and reserves it until
// releaseNode; -1 if there is none.
func (t *Target) reserveNode(ctx context.Context, p nodeChoice) int {
	leading := -1
	if p.role != roleAny {
		leading = t.Leader(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var fit []int
	for i := range t.Nodes {
		if !t.busy[i] && (p.role == roleAny || leading < 0 || (i == leading) == (p.role == roleLeader)) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return -1
	}
	node := fit[p.dice%len(fit)]
	t.busy[node] = true
	return node
}

func (t *Target) releaseNode(node int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, node)
}

// excuseExits declares that a fault was expected to cause the exits of a node, except for the first from of them.
func (t *Target) excuseExits(node, from int) {
	exits := len(t.Nodes[node].Exits())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.excused[node] += exits - from
}

// UnexpectedExits returns the exits of processes that no fault explains.
func (t *Target) UnexpectedExits() []nodes.Exit {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []nodes.Exit
	for i, n := range t.Nodes {
		if exits := n.Exits(); len(exits) > t.excused[i] {
			list = append(list, exits[t.excused[i]:]...)
		}
	}
	return list
}
