package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/raft"
)

// ballot is what the members say of their states at one index.
type ballot struct {
	index uint64
	// said is the digest of each member that was heard at the index.
	said map[string]string
	// majority is the digest that more than half of all voters have; empty if none.
	majority string
	// disputed is true if there is none although there are different ones.
	disputed bool
}

// of is the finding about one digest.
func (b ballot) of(digest string) Finding {
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

// judge counts the digests at an index. Only voters count; everybody is judged.
func (n *Node) judge(index uint64) ballot {
	servers := n.servers()
	b := ballot{index: index, said: map[string]string{}}
	voters, votes := 0, map[string]int{}
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
		for _, point := range n.checkpoints.of(string(s.ID)) {
			if point.Index != index {
				continue
			}
			b.said[string(s.ID)] = point.Digest
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

// compare looks at every checkpoint that this node has summed up. If a majority of the voters holds another state than this
// node, this node stops for good; what it finds about others it only says, because they find it themselves.
func (n *Node) compare() {
	for _, own := range n.checkpoints.of(n.config.ID) {
		b := n.judge(own.Index)
		wrong := b.wrong()
		if len(wrong) == 0 {
			continue
		}
		if slices.Contains(wrong, n.config.ID) && !b.disputed {
			n.quarantine(n.diverged(b))
			return
		}
		n.complain(b, wrong)
	}
}

// wrong are the members, by id, that differ from the majority; all that were heard if there is none.
func (b ballot) wrong() []string {
	var wrong []string
	for _, id := range slices.Sorted(maps.Keys(b.said)) {
		if b.disputed || b.majority != "" && b.said[id] != b.majority {
			wrong = append(wrong, id)
		}
	}
	return wrong
}

// complain logs a finding about others, once.
func (n *Node) complain(b ballot, wrong []string) {
	key := fmt.Sprint(b.index, b.disputed, wrong)
	n.checkpoints.mu.Lock()
	again := n.checkpoints.complained[key]
	n.checkpoints.complained[key] = true
	n.checkpoints.mu.Unlock()
	switch {
	case again:
	case b.disputed:
		n.log.Error("the members hold different states and none has a majority; nobody is stopped: find out which one is right, and "+
			"replace the others", "checkpoint", b.index, "states", b.said)
	default:
		n.log.Error("members hold another state than the majority; they stop serving: replace them by new ones with empty data folders",
			"checkpoint", b.index, "members", wrong, "states", b.said)
	}
}

func (n *Node) diverged(b ballot) error {
	return fmt.Errorf("node %s holds another state than the majority: at checkpoint %d its digest is %s and theirs is %s; its data cannot "+
		"be trusted: stop it, put its data folder aside for analysis, and let it join again with an empty one", n.config.ID, b.index,
		b.said[n.config.ID], b.majority)
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

// quarantined is why this node must not serve, as it was found before its last start; nil if it may.
func quarantined(stable raft.StableStore) error {
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
