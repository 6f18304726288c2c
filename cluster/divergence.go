package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/raft"
)

// digestTally counts the digests that members reported at one index.
type digestTally struct {
	index uint64
	// digests is the digest of each member that reported one at the index.
	digests map[string]string
	// majority is the digest that more than half of all voters have; empty if there is none.
	majority string
	// disputed is true if the digests differ and none has a majority.
	disputed bool
}

// findingFor returns the finding for a member that reported digest.
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

// tallyDigests counts the digests at an index. Only voters count; every member is compared.
func (n *Node) tallyDigests(index uint64) digestTally {
	servers := n.servers()
	b := digestTally{index: index, digests: map[string]string{}}
	voters, votes := 0, map[string]int{}
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
		for _, point := range n.checkpoints.newestFirst(string(s.ID)) {
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

// compareCheckpoints evaluates every checkpoint whose digest this node has computed. If a majority of the voters has
// another state, this node quarantines itself. Findings about other members are only logged, because those members
// detect them as well.
func (n *Node) compareCheckpoints() {
	for _, own := range n.checkpoints.newestFirst(n.config.ID) {
		b := n.tallyDigests(own.Index)
		wrong := b.differingMembers()
		if len(wrong) == 0 {
			continue
		}
		if slices.Contains(wrong, n.config.ID) && !b.disputed {
			n.quarantine(n.divergenceError(b))
			return
		}
		n.logDivergence(b, wrong)
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

// logDivergence logs a finding about other members once.
func (n *Node) logDivergence(b digestTally, wrong []string) {
	key := fmt.Sprint(b.index, b.disputed, wrong)
	n.checkpoints.mu.Lock()
	again := n.checkpoints.logged[key]
	n.checkpoints.logged[key] = true
	n.checkpoints.mu.Unlock()
	switch {
	case again:
	case b.disputed:
		n.log.Error("the members hold different states and none has a majority; no member is stopped: find "+
			"out which state "+
			"is right, and replace the other members", "checkpoint", b.index, "states", b.digests)
	default:
		n.log.Error("members hold another state than the majority; they stop serving: replace them by new "+
			"ones with empty "+
			"data folders",
			"checkpoint", b.index, "members", wrong, "states", b.digests)
	}
}

func (n *Node) divergenceError(b digestTally) error {
	return fmt.Errorf("node %s holds another state than the majority: at checkpoint %d its digest is %s and theirs is "+
		"%s; its data cannot be trusted: stop it, put its data folder aside for analysis, and let it "+
		"join again with an "+
		"empty one", n.config.ID, b.index,
		b.digests[n.config.ID], b.majority)
}

// divergedKey is the key in the stable store under which a node keeps the reason of its quarantine.
var divergedKey = []byte("quorate.diverged")

// quarantine stops the node from serving, voting and leading, now and after every restart. The process keeps running
// and reports the reason. The quarantine ends when the data folder is emptied or LiftQuarantine is called.
func (n *Node) quarantine(fault error) {
	if err := n.parts.Stable.Set(divergedKey, []byte(fault.Error())); err != nil {
		n.log.Error("cannot record that this node must not serve", "error", err)
	}
	n.stopServing(fault, true)
}

// quarantineFault returns why this node was quarantined before it started, or nil.
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
