package cluster

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// horizon finds the entry to wait for: the last one at or below an index that reaches the ledger. raft keeps elections
// and barriers to itself. The answer for one index holds for ever, and helps with the next.
type horizon struct {
	mu            sync.Mutex
	index, answer uint64
}

func (h *horizon) below(index uint64, logs raft.LogStore, applied func() uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := index; i > 0; i-- {
		if i == h.index {
			return h.remember(index, h.answer), nil
		}
		var entry raft.Log
		err := logs.GetLog(i, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			// All below is in a snapshot, and so in this node's ledger already.
			return min(index, applied()), nil
		}
		if err != nil {
			return 0, failure(Halted, true, err, "cannot read log entry %d", i)
		}
		if entry.Type == raft.LogCommand {
			return h.remember(index, i), nil
		}
	}
	return h.remember(index, 0), nil
}

func (h *horizon) remember(index, answer uint64) uint64 {
	h.index, h.answer = index, answer
	return answer
}
