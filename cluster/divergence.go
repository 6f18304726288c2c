package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/raft"
)

// digestTally is what the members say of their states at one index.
type digestTally struct {
	index uint64
	// digests is the digest of each member that was heard at the index.
	digests map[string]string
	// majority is the digest that more than half of all voters have; empty if none.
	majority string
	// disputed is true if there is none although there are different ones.
	disputed bool
}

// findingFor is the finding about one digest.
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

// tallyDigests counts the digests at an index. Only voters count; everybody is judged.
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

// compareCheckpoints looks at every checkpoint that this node has summed up. If a majority of the voters holds another state than this
// node, this node stops for good; what it finds about others it only says, because they find it themselves.
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

// differingMembers are the members, by id, that differ from the majority; all that were heard if there is none.
func (b digestTally) differingMembers() []string {
	var wrong []string
	for _, id := range slices.Sorted(maps.Keys(b.digests)) {
		if b.disputed || b.majority != "" && b.digests[id] != b.majority {
			wrong = append(wrong, id)
		}
	}
	return wrong
}

// logDivergence logs a finding about others, once.
func (n *Node) logDivergence(b digestTally, wrong []string) {
	key := fmt.Sprint(b.index, b.disputed, wrong)
	n.checkpoints.mu.Lock()
	again := n.checkpoints.logged[key]
	n.checkpoints.logged[key] = true
	n.checkpoints.mu.Unlock()
	switch {
	case again:
	case b.disputed:
		n.log.Error("the members hold different states and none has a majority; nobody is stopped: find out which one is right, and "+
			"replace the others", "checkpoint", b.index, "states", b.digests)
	default:
		n.log.Error("members hold another state than the majority; they stop serving: replace them by new ones with empty data folders",
			"checkpoint", b.index, "members", wrong, "states", b.digests)
	}
}

func (n *Node) divergenceError(b digestTally) error {
	return fmt.Errorf("node %s holds another state than the majority: at checkpoint %d its digest is %s and theirs is %s; its data cannot "+
		"be trusted: stop it, put its data folder aside for analysis, and let it join again with an empty one", n.config.ID, b.index,
		b.digests[n.config.ID], b.majority)
}

// divergedKey is where the stable store says why this node must not serve any more.
var divergedKey = []byte("quorate.diverged")

// quarantine stops the node from serving, voting and leading, now and after every restart, and leaves the process running,
// so that it can say why. Only an empty data folder ends it.
func (n *Node) quarantine(fault error) {
	if err := n.parts.Stable.Set(divergedKey, []byte(fault.Error())); err != nil {
		n.log.Error("cannot remember that this node must not serve", "error", err)
	}
	n.stopServing(fault, true)
}

// quarantineFault is why this node must not serve, as it was found before its last start; nil if it may.
func quarantineFault(stable raft.StableStore) error {
	text, err := stable.Get(divergedKey)
	switch {
	case err != nil && err.Error() == "not found": // as raft tells it
		return nil
	case err != nil:
		return fmt.Errorf("look whether this node may serve: %w", err)
	case len(text) == 0:
		return nil
	}
	return errors.New(string(text))
}

// QuarantineReason is why the node of a stable store must not serve, as it was found before it stopped; empty if it may.
func QuarantineReason(stable raft.StableStore) (string, error) {
	text, err := stable.Get(divergedKey)
	switch {
	case err != nil && err.Error() == "not found": // as raft tells it
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look whether this node may serve: %w", err)
	}
	return string(text), nil
}

// LiftQuarantine lets the node of a stable store serve again. The caller has proved that its state is that of a majority.
func LiftQuarantine(stable raft.StableStore) error {
	if err := stable.Set(divergedKey, nil); err != nil {
		return fmt.Errorf("lift the quarantine: %w", err)
	}
	return nil
}
