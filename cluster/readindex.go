package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// ReadIndex returns an index at or above everything that was acknowledged before the call, after it has confirmed that
// this node still leads. Concurrent calls share one round of messages. Errors are *Error.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	l, err := n.establishedLeadership()
	if err != nil {
		return 0, err
	}
	return l.reads.waitConfirmed(ctx)
}

// confirmLeadership confirms with a majority that this node still leads, and returns the commit index from before. The
// index is read first, so that everything acknowledged before the query is at or below it. raft's own verification
// counts answers to older messages; the transport's proof, which is based on when messages were sent, must therefore
// hold as well, and the verification is repeated until it does.
func (l *leadership) confirmLeadership() (uint64, error) {
	n := l.node
	since, index := time.Now(), n.raft.CommitIndex()
	for {
		if err := n.raft.VerifyLeader().Error(); err != nil {
			return 0, l.leadershipLostError(err)
		}
		proved := n.transport.AckedSince(l.term, since, n.voterIDs(), raft.ServerID(n.config.ID))
		if n.raft.CurrentTerm() != l.term || n.raft.State() != raft.Leader || l.ctx.Err() != nil {
			return 0, l.leadershipLostError(nil)
		}
		if proved {
			return n.lastCommand.atOrBelow(index, n.logs, n.ledger.Applied)
		}
	}
}

func (l *leadership) leadershipLostError(cause error) error {
	e := newError(LeadershipLost, true, cause, "node %s lost the leadership before the read was confirmed",
		l.node.config.ID)
	e.Leader = l.node.leaderID()
	return e
}

func (n *Node) voterIDs() []raft.ServerID {
	var voters []raft.ServerID
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s.ID)
		}
	}
	return voters
}

// lastCommandIndex finds the index to wait for: that of the last entry at or below an index that reaches the ledger.
// raft handles elections and barriers itself. The result for an index never changes, and shortens the next search.
type lastCommandIndex struct {
	mu            sync.Mutex
	index, answer uint64
}

func (h *lastCommandIndex) atOrBelow(index uint64, logs raft.LogStore, applied func() uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := index; i > 0; i-- {
		if i == h.index {
			return h.rememberAnswer(index, h.answer), nil
		}
		var entry raft.Log
		err := logs.GetLog(i, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			// Everything below is in a snapshot, and so in this node's ledger already.
			return min(index, applied()), nil
		}
		if err != nil {
			return 0, newError(Halted, true, err, "cannot read log entry %d", i)
		}
		if entry.Type == raft.LogCommand {
			return h.rememberAnswer(index, i), nil
		}
	}
	return h.rememberAnswer(index, 0), nil
}

func (h *lastCommandIndex) rememberAnswer(index, answer uint64) uint64 {
	h.index, h.answer = index, answer
	return answer
}
