package cluster

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

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

type checkpoints struct {
	// last is the index of the newest checkpoint that was applied on this node.
	last atomic.Uint64
	// undigested is the newest state whose digest is still to be computed.
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

// recordPoint is false if the checkpoint is known already.
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

// newestPoint also returns when the checkpoint was received; zero values without one.
func (c *checkpoints) newestPoint(id string) (Checkpoint, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if points := c.points[id]; len(points) > 0 {
		return points[len(points)-1], c.recordedAt[id]
	}
	return Checkpoint{}, time.Time{}
}

func (c *checkpoints) hasIndex(id string, index uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.points[id], func(p Checkpoint) bool { return p.Index == index })
}

func (c *checkpoints) newestFirst(id string) []Checkpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	newestFirst := slices.Clone(c.points[id])
	slices.Reverse(newestFirst)
	return newestFirst
}

// Checkpoint makes every member compute a digest of its current state and returns the log index at which all of them do
// so; Comparison returns the result. It works only on the established leader. Errors are *Error.
func (n *Node) Checkpoint(ctx context.Context) (uint64, error) {
	l, err := n.leader.established()
	if err != nil {
		return 0, err
	}
	return l.commit.proposePart(ctx, fsm.Checkpoint())
}

type checkpointWriter struct {
	log         hclog.Logger
	ctx         context.Context //nolint:containedctx // that of the leadership
	every       time.Duration   // Config.CheckpointEvery
	ledger      *fsm.FSM
	checkpoints *checkpoints
	commit      *groupCommit
}

// run proposes a checkpoint regularly, unless nothing was applied since the last one.
func (w *checkpointWriter) run() {
	for sleepContext(w.ctx, w.every) {
		if w.ledger.Applied() == w.checkpoints.last.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(w.ctx, w.every)
		_, err := w.commit.proposePart(ctx, fsm.Checkpoint())
		cancel()
		if err != nil && w.ctx.Err() == nil {
			w.log.Warn("a checkpoint could not be written", "error", err)
		}
	}
}
