package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
)

// comparison compares the checkpoints of the members and finds out which of them have another state.
type comparison struct {
	self        string
	log         hclog.Logger
	checkpoints *checkpoints
	roster      *peers.Roster
	answers     *peers.Answers
	// quarantine is called when a majority has another state than this node.
	quarantine func(error)
	// quarantined is true once that was done, now or before a restart.
	quarantined *atomic.Bool
}

type digestTally struct {
	index uint64
	// digests is the digest of each member that reported one at the index.
	digests map[string]string
	// majority is the digest that more than half of all voters have; empty if there is none.
	majority string
	// disputed is true if the digests differ and none has a majority.
	disputed bool
}

func (b digestTally) findingFor(digest string) Finding {
	switch {
	case b.majority == "" && b.disputed:
		return Disputed
	case b.majority == "":
		return ""
	case b.majority == digest:
		return Agrees
	}
	return Differs
}

func (c *comparison) run(ctx context.Context) {
	for {
		select {
		case state := <-c.checkpoints.undigested:
			sum, err := state.Digest(ctx)
			if err != nil {
				return // the node is shutting down
			}
			point := Checkpoint{Index: state.Index(), Digest: hex.EncodeToString(sum[:digestBytes])}
			c.checkpoints.recordPoint(c.self, point)
			c.compare()
		case <-ctx.Done():
			return
		}
	}
}

func (c *comparison) record(status NodeStatus) {
	isNew := false
	for _, point := range slices.Backward(status.Checkpoints[:min(checkpointsKept, len(status.Checkpoints))]) {
		isNew = c.checkpoints.recordPoint(status.ID, point) || isNew
	}
	if isNew {
		c.compare()
	}
}

// tally counts only voters, though every member is compared.
func (c *comparison) tally(index uint64) digestTally {
	servers := c.roster.Servers()
	b := digestTally{index: index, digests: map[string]string{}}
	voters, votes := 0, map[string]int{}
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
		for _, point := range c.checkpoints.newestFirst(string(s.ID)) {
			if point.Index != index {
				continue
			}
			b.digests[string(s.ID)] = point.Digest
			if s.Suffrage == raft.Voter {
				votes[point.Digest]++
			}
			break
		}
	}
	for digest, count := range votes {
		if 2*count > voters {
			b.majority = digest
		}
	}
	b.disputed = b.majority == "" && len(votes) > 1
	return b
}

// compare evaluates every checkpoint whose digest this node has computed. If a majority of the voters has
// another state, this node quarantines itself. Findings about other members are only logged, because those members
// detect them as well.
func (c *comparison) compare() {
	for _, own := range c.checkpoints.newestFirst(c.self) {
		b := c.tally(own.Index)
		wrong := b.differingMembers()
		if len(wrong) == 0 {
			continue
		}
		if slices.Contains(wrong, c.self) && !b.disputed {
			c.quarantine(c.divergenceError(b))
			return
		}
		c.logDivergence(b, wrong)
	}
}

// differingMembers returns the ids of the members that differ from the majority, or of all reporting members if
// disputed.
func (b digestTally) differingMembers() []string {
	var wrong []string
	for _, id := range slices.Sorted(maps.Keys(b.digests)) {
		if b.disputed || b.majority != "" && b.digests[id] != b.majority {
			wrong = append(wrong, id)
		}
	}
	return wrong
}

// logDivergence logs a finding once.
func (c *comparison) logDivergence(b digestTally, wrong []string) {
	key := fmt.Sprint(b.index, b.disputed, wrong)
	c.checkpoints.mu.Lock()
	again := c.checkpoints.logged[key]
	c.checkpoints.logged[key] = true
	c.checkpoints.mu.Unlock()
	switch {
	case again:
	case b.disputed:
		c.log.Error("the members hold different states and none has a majority; no member is stopped: find "+
			"out which state "+
			"is right, and replace the other members", "checkpoint", b.index, "states", b.digests)
	default:
		c.log.Error("members hold another state than the majority; they stop serving: replace them by new "+
			"ones with empty "+
			"data folders",
			"checkpoint", b.index, "members", wrong, "states", b.digests)
	}
}

func (c *comparison) divergenceError(b digestTally) error {
	return fmt.Errorf("node %s holds another state than the majority: at checkpoint %d its digest is %s and theirs is "+
		"%s; its data cannot be trusted: stop it, put its data folder aside for analysis, and let it "+
		"join again with an "+
		"empty one", c.self, b.index,
		b.digests[c.self], b.majority)
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

func (c *comparison) members() []MemberComparison {
	var list []MemberComparison
	for _, m := range c.roster.Members() {
		entry := MemberComparison{ID: m.ID}
		if points := c.checkpoints.newestFirst(m.ID); len(points) > 0 {
			entry.Checkpoint = points[0]
			entry.Finding = c.tally(points[0].Index).findingFor(points[0].Digest)
		}
		// It computes no digests any more, and forgot the others if it was restarted.
		if c.isQuarantined(m.ID) {
			entry.Finding = Differs
		}
		list = append(list, entry)
	}
	return list
}

func (c *comparison) isQuarantined(id string) bool {
	if id == c.self {
		return c.quarantined.Load()
	}
	return c.answers.Find(id).Quarantined
}

// Comparison returns what this node knows about the last checkpoint of each member, sorted by id.
func (n *Node) Comparison() []MemberComparison { return n.comparison.members() }

// CountDiffering counts the members whose last checkpoint differs from the majority, or is disputed, this node
// included. A member that stopped counts until its data was replaced.
func (n *Node) CountDiffering() int {
	count := 0
	for _, m := range n.comparison.members() {
		if m.Finding == Differs || m.Finding == Disputed {
			count++
		}
	}
	return count
}

// divergedKey is the key in the stable store under which a node keeps the reason of its quarantine.
var divergedKey = []byte("quorate.diverged")

// quarantine stops the node from serving, voting and leading, now and after every restart. The process keeps running
// and reports the reason. The quarantine ends when the data folder is emptied or LiftQuarantine is called.
func (n *Node) quarantine(fault error) {
	n.quarantined.Store(true)
	if err := n.parts.Stable.Set(divergedKey, []byte(fault.Error())); err != nil {
		n.log.Error("cannot record that this node must not serve", "error", err)
	}
	n.stopServing(fault, true)
}

func quarantineFault(stable raft.StableStore) error {
	reason, err := QuarantineReason(stable)
	if err != nil || reason == "" {
		return err
	}
	return errors.New(reason)
}

// QuarantineReason returns why the stopped node that owns the stable store is in quarantine; empty if it is not.
func QuarantineReason(stable raft.StableStore) (string, error) {
	text, err := stable.Get(divergedKey)
	switch {
	case err != nil && err.Error() == "not found": // the only sign of a missing key
		return "", nil
	case err != nil:
		return "", fmt.Errorf("check whether this node may serve: %w", err)
	}
	return string(text), nil
}

// LiftQuarantine ends the quarantine of the stopped node that owns the stable store. The caller must have proved that
// the node's state is that of a majority.
func LiftQuarantine(stable raft.StableStore) error {
	if err := stable.Set(divergedKey, nil); err != nil {
		return fmt.Errorf("lift the quarantine: %w", err)
	}
	return nil
}
