package cluster

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/fsm"
)

const (
	// checkpointsKept is how many checkpoints of each member are remembered: a slow member answers for an older one.
	checkpointsKept = 8
	// maxDigestText is the longest text of a digest that is taken from a member.
	maxDigestText = 64
	// digestBytes is how much of a digest the members tell each other: it finds accidents, not forgers.
	digestBytes = 8
)

// Checkpoint is the digest, in hexadecimal, of the state that a node had behind an entry of the log.
type Checkpoint struct {
	Index  uint64
	Digest string
}

// checkpoints is what a node knows of its own and of its peers' states.
type checkpoints struct {
	// last is the index of the newest checkpoint that was applied here.
	last atomic.Uint64
	// frozen is the newest state that is still to be summed up.
	frozen chan *fsm.Checkpointed

	mu sync.Mutex
	// points are the checkpoints of each member, this node among them, the oldest first, and noted is when the newest came.
	points     map[string][]Checkpoint
	recordedAt map[string]time.Time
	// logged are the findings that were logged already.
	logged map[string]bool
}

func newCheckpoints() *checkpoints {
	return &checkpoints{
		frozen: make(chan *fsm.Checkpointed, 1), points: map[string][]Checkpoint{}, recordedAt: map[string]time.Time{}, logged: map[string]bool{},
	}
}

// offerFrozen is called on raft's goroutine and never blocks: a state that nobody has begun to sum up gives way to a newer one.
func (c *checkpoints) offerFrozen(frozen *fsm.Checkpointed) {
	c.last.Store(frozen.Index())
	select {
	case <-c.frozen:
	default:
	}
	c.frozen <- frozen
}

// recordPoint remembers a checkpoint of a member, false if that is known already.
func (c *checkpoints) recordPoint(id string, point Checkpoint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.points[id]
	if point.Digest == "" || len(point.Digest) > maxDigestText || slices.Contains(known, point) {
		return false
	}
	c.points[id] = append(known[max(0, len(known)-checkpointsKept+1):len(known):len(known)], point)
	c.recordedAt[id] = time.Now()
	return true
}

// newestPoint is the last checkpoint of a member and when it was noted; zero if there is none.
func (c *checkpoints) newestPoint(id string) (Checkpoint, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if points := c.points[id]; len(points) > 0 {
		return points[len(points)-1], c.recordedAt[id]
	}
	return Checkpoint{}, time.Time{}
}

// hasIndex tells whether a member has said what its state was at an index.
func (c *checkpoints) hasIndex(id string, index uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.points[id], func(p Checkpoint) bool { return p.Index == index })
}

// newestFirst returns the checkpoints of a member, the newest first.
func (c *checkpoints) newestFirst(id string) []Checkpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	newestFirst := slices.Clone(c.points[id])
	slices.Reverse(newestFirst)
	return newestFirst
}

// digestCheckpoints computes the digests of checkpoints, beside everything else, and has them compared.
func (n *Node) digestCheckpoints() {
	for {
		select {
		case frozen := <-n.checkpoints.frozen:
			sum, err := frozen.Digest(n.ctx)
			if err != nil {
				return // the node is on its way out
			}
			n.checkpoints.recordPoint(n.config.ID, Checkpoint{frozen.Index(), hex.EncodeToString(sum[:digestBytes])})
			n.compareCheckpoints()
		case <-n.ctx.Done():
			return
		}
	}
}

// processStatus takes in what a member says of its states. Only members of raft's configuration are heard.
func (n *Node) processStatus(said NodeStatus) {
	if !containsServer(n.servers(), said.ID) {
		return
	}
	n.warnAboutLevel(said)
	news := false
	for _, point := range slices.Backward(said.Checkpoints[:min(checkpointsKept, len(said.Checkpoints))]) {
		news = n.checkpoints.recordPoint(said.ID, point) || news
	}
	if news {
		n.compareCheckpoints()
	}
}

// Checkpoint has every member sum up its state as it is now, and returns the index that all of them do so at; Comparison
// tells what came of it. Only the established leader can, and only from feature level 4 on. Errors are *Error.
func (n *Node) Checkpoint(ctx context.Context) (uint64, error) {
	if err := n.checkServing(); err != nil {
		return 0, err
	}
	l := n.leadership.Load()
	if l == nil {
		return 0, n.notLeaderError()
	}
	if err := n.checkFormat(fsm.Checkpoint().Format); err != nil {
		return 0, err
	}
	return l.proposePart(ctx, fsm.Checkpoint())
}

// runCheckpoints proposes a checkpoint every so often, unless nothing was applied since the last one.
func (l *leadership) runCheckpoints() {
	n := l.node
	for sleepContext(l.ctx, n.config.CheckpointEvery) {
		if n.ledger.Format() < fsm.Checkpoint().Format || n.ledger.Applied() == n.checkpoints.last.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(l.ctx, n.config.CheckpointEvery)
		_, err := l.proposePart(ctx, fsm.Checkpoint())
		cancel()
		if err != nil && l.ctx.Err() == nil {
			n.log.Warn("a checkpoint could not be written", "error", err)
		}
	}
}

// MemberComparison is what one member's state was at a checkpoint, as far as this node has heard.
type MemberComparison struct {
	// ID is the member's.
	ID string
	// Checkpoint is the member's last one; zero if none was heard of.
	Checkpoint
	Finding
}

// Finding is what came of comparing one member's state; empty as long as too few were heard of.
type Finding string

// The closed list of findings.
const (
	// Agrees: a majority of the voters has the same state.
	Agrees Finding = "agrees"
	// Differs: a majority of the voters has another state; the member stops.
	Differs Finding = "differs"
	// Disputed: there are different states and none has a majority; nobody stops.
	Disputed Finding = "disputed"
)

// Comparison is what this node knows of the members' last checkpoints, by id.
func (n *Node) Comparison() []MemberComparison {
	var list []MemberComparison
	for _, m := range n.Members() {
		entry := MemberComparison{ID: m.ID}
		if points := n.checkpoints.newestFirst(m.ID); len(points) > 0 {
			entry.Checkpoint = points[0]
			entry.Finding = n.tallyDigests(points[0].Index).findingFor(points[0].Digest)
		}
		list = append(list, entry)
	}
	return list
}

// CountDiffering is how many members were found, at the last checkpoint that each of them answered for, to hold another state than a
// majority, this node among them, or to disagree without one. A member that stopped counts until its data was replaced.
func (n *Node) CountDiffering() int {
	count := 0
	for _, m := range n.Comparison() {
		if m.Finding == Differs || m.Finding == Disputed {
			count++
		}
	}
	return count
}
