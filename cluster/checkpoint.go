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
	// checkpointsKept is how many checkpoints of each member are kept. A slow member reports older ones.
	checkpointsKept = 8
	// maxDigestText is the maximum length of a digest that is accepted from a member.
	maxDigestText = 64
	// digestBytes is how much of a digest members exchange: enough to detect accidental divergence, not forgery.
	digestBytes = 8
)

// Checkpoint is the digest, in hexadecimal, of the state of a node after the log entry at Index.
type Checkpoint struct {
	Index  uint64
	Digest string
}

// checkpoints holds the known checkpoints of this node and of its peers.
type checkpoints struct {
	// last is the index of the newest checkpoint that was applied on this node.
	last atomic.Uint64
	// undigested holds the newest state whose digest is still to be computed.
	undigested chan *fsm.Checkpointed

	mu sync.Mutex
	// points are the checkpoints of each member, this node included, oldest first; recordedAt is when the newest was
	// received.
	points     map[string][]Checkpoint
	recordedAt map[string]time.Time
	// logged are the findings that were logged already.
	logged map[string]bool
}

func newCheckpoints() *checkpoints {
	return &checkpoints{
		undigested: make(chan *fsm.Checkpointed, 1), points: map[string][]Checkpoint{}, recordedAt: map[string]time.Time{},
		logged: map[string]bool{},
	}
}

// queueDigest is called on raft's goroutine and never blocks: it replaces a state whose digest computation has not
// started.
func (c *checkpoints) queueDigest(state *fsm.Checkpointed) {
	c.last.Store(state.Index())
	select {
	case <-c.undigested:
	default:
	}
	c.undigested <- state
}

// recordPoint stores a checkpoint of a member. It returns false if the checkpoint is known already.
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

// newestPoint returns the last checkpoint of a member and when it was received, or zero values.
func (c *checkpoints) newestPoint(id string) (Checkpoint, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if points := c.points[id]; len(points) > 0 {
		return points[len(points)-1], c.recordedAt[id]
	}
	return Checkpoint{}, time.Time{}
}

// hasIndex reports whether a member has reported a checkpoint at index.
func (c *checkpoints) hasIndex(id string, index uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.points[id], func(p Checkpoint) bool { return p.Index == index })
}

// newestFirst returns the checkpoints of a member, newest first.
func (c *checkpoints) newestFirst(id string) []Checkpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	newestFirst := slices.Clone(c.points[id])
	slices.Reverse(newestFirst)
	return newestFirst
}

// digestCheckpoints computes the digests of checkpoints in the background and compares them with those of the peers.
func (n *Node) digestCheckpoints() {
	for {
		select {
		case state := <-n.checkpoints.undigested:
			sum, err := state.Digest(n.ctx)
			if err != nil {
				return // the node is shutting down
			}
			n.checkpoints.recordPoint(n.config.ID, Checkpoint{state.Index(), hex.EncodeToString(sum[:digestBytes])})
			n.compareCheckpoints()
		case <-n.ctx.Done():
			return
		}
	}
}

// processStatus records the checkpoints in the status of a member. Nodes outside of raft's configuration are ignored.
func (n *Node) processStatus(status NodeStatus) {
	if !containsServer(n.servers(), status.ID) {
		return
	}
	n.warnAboutLevel(status)
	isNew := false
	for _, point := range slices.Backward(status.Checkpoints[:min(checkpointsKept, len(status.Checkpoints))]) {
		isNew = n.checkpoints.recordPoint(status.ID, point) || isNew
	}
	if isNew {
		n.compareCheckpoints()
	}
}

// Checkpoint makes every member compute a digest of its current state and returns the log index at which all of them do
// so; Comparison returns the result. It works only on the established leader. Errors are *Error.
func (n *Node) Checkpoint(ctx context.Context) (uint64, error) {
	l, err := n.establishedLeadership()
	if err != nil {
		return 0, err
	}
	return l.proposePart(ctx, fsm.Checkpoint())
}

// runCheckpoints proposes a checkpoint every CheckpointEvery, unless nothing was applied since the last one.
func (l *leadership) runCheckpoints() {
	n := l.node
	for sleepContext(l.ctx, n.config.CheckpointEvery) {
		if n.ledger.Applied() == n.checkpoints.last.Load() {
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

// MemberComparison is the result of comparing the state of one member at a checkpoint, as far as this node knows.
type MemberComparison struct {
	// ID is the id of the member.
	ID string
	// Checkpoint is the member's last checkpoint; zero if none is known.
	Checkpoint
	Finding
}

// Finding is the result of comparing one member's state; empty while too few checkpoints are known.
type Finding string

// All findings.
const (
	// Agrees: a majority of the voters has the same state.
	Agrees Finding = "agrees"
	// Differs: a majority of the voters has another state; the member stops.
	Differs Finding = "differs"
	// Disputed: the states differ and none has a majority; no member stops.
	Disputed Finding = "disputed"
)

// Comparison returns what this node knows about the last checkpoint of each member, sorted by id.
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

// CountDiffering counts the members whose last checkpoint differs from the majority, or is disputed, this node
// included. A member that stopped counts until its data was replaced.
func (n *Node) CountDiffering() int {
	count := 0
	for _, m := range n.Comparison() {
		if m.Finding == Differs || m.Finding == Disputed {
			count++
		}
	}
	return count
}
