package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/chaos/nodes"
	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const (
	// pollInterval is the pause between two looks at a cluster that should get somewhere.
	pollInterval = 100 * time.Millisecond
	// askTimeout bounds one question to one node.
	askTimeout = 2 * time.Second
	// Patience bounds how long a cluster without faults may take to be healthy. It is long because the machine of a test may
	// be busy with others.
	Patience = 2 * time.Minute
)

// Event is one line of the timeline of a run.
type Event struct {
	At time.Time
	// What happened, and to which node; empty if to none or several.
	What, Node string
}

// Span is one fault from its beginning to its end, or the healing.
type Span struct {
	Name        string
	From, Until time.Time
}

// Target is a cluster under faults. All methods are safe for concurrent use.
type Target struct {
	*nodes.Cluster
	// Binary is what the nodes should run in the end, Old another version, empty if there is none.
	Binary, Old string
	// Turnable is true if the binary has a clock that can be turned.
	Turnable bool
	// Watch, if not nil, is told of each event when it happens.
	Watch func(Event)

	clients []*client.Client

	mu      sync.Mutex
	events  []Event
	spans   []Span
	busy    map[int]bool
	excused map[int]int
	layers  map[*linkLayer]bool
	// departures are the seats that nodes were asked to give up.
	departures map[int]departure
	// upgraded is how many nodes, the first ones, run Binary instead of Old.
	upgraded int
}

// NewTarget looks after a cluster.
func NewTarget(c *nodes.Cluster, binary string) (*Target, error) {
	t := &Target{
		Cluster: c, Binary: binary, busy: map[int]bool{}, excused: map[int]int{}, layers: map[*linkLayer]bool{},
		departures: map[int]departure{},
	}
	for _, url := range c.URLs() {
		one, err := client.New([]string{url}, client.WithPatience(askTimeout), client.WithAttemptTimeout(askTimeout))
		if err != nil {
			return nil, err
		}
		t.clients = append(t.clients, one)
	}
	return t, nil
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

// Events is the timeline so far.
func (t *Target) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.events)
}

// Spans are all faults that have ended so far, and the healing.
func (t *Target) Spans() []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.spans)
}

// addSpan notes that something has lasted from a time until now.
func (t *Target) addSpan(name string, from time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, Span{name, from, time.Now()})
}

// nodeStatus asks one node about itself.
func (t *Target) nodeStatus(ctx context.Context, node int) (*quoratev1.GetStatusResponse, error) {
	if !t.Nodes[node].Running() {
		return nil, fmt.Errorf("%s does not run", t.Nodes[node].ID)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return t.clients[node].Cluster.GetStatus(ctx, &quoratev1.GetStatusRequest{Local: true})
}

// nodeStatuses asks all nodes at once; nil for those that do not answer.
func (t *Target) nodeStatuses(ctx context.Context) []*quoratev1.GetStatusResponse {
	all := make([]*quoratev1.GetStatusResponse, len(t.Nodes))
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

// Leader is the node that says in the newest term that it leads, or -1.
func (t *Target) Leader(ctx context.Context) int {
	leader, term := -1, uint64(0)
	for i, s := range t.nodeStatuses(ctx) {
		if s != nil && s.GetLeaderId() == t.Nodes[i].ID && s.GetTerm() >= term {
			leader, term = i, s.GetTerm()
		}
	}
	return leader
}

// isVoter tells whether a node that was asked about itself alone is a voter. One that came back with an empty folder is none for
// a while, and until then the cluster can miss nobody.
func isVoter(s *quoratev1.GetStatusResponse) bool {
	own := s.GetMembers()
	return len(own) == 1 && own[0].GetVoter()
}

// Healthy is nil if all nodes run, vote, follow one leader, find nothing wrong, and have applied what the leader had.
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

// awaitApplied is nil once all nodes have applied an index.
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

// AwaitHealthy waits until the cluster is healthy; an error says what is missing after patience. Members that a fault could not
// bring back, because another one was in the way, it brings back.
func (t *Target) AwaitHealthy(ctx context.Context, patience time.Duration) error {
	return retryUntil(ctx, patience, func() error {
		err := t.Healthy(ctx)
		if err == nil {
			return nil
		}
		return errors.Join(err, t.restoreVotes(ctx))
	})
}

// retryUntil tries until it works; an error is the last one.
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

// Sleep waits, and answers false if ctx ended meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// nodeRole is who a fault hits.
type nodeRole uint8

// The closed list of roles.
const (
	roleAny nodeRole = iota
	roleLeader
	roleFollower
)

// nodeChoice is a node that is drawn before it is known who leads.
type nodeChoice struct {
	role nodeRole
	dice int
}

func chooseNode(r *rand.Rand, who nodeRole) nodeChoice { return nodeChoice{who, r.IntN(1 << 16)} }

// reserveNode resolves a pick to a node that no other fault has, and reserves it until give; -1 if all are taken.
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

// excuseExits says that the exits of a node from a number on were what its fault should lead to.
func (t *Target) excuseExits(node, from int) {
	exits := len(t.Nodes[node].Exits())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.excused[node] += exits - from
}

// UnexpectedExits are the ends of processes that no fault explains.
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
