package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
)

// ReadIndex returns an index at or above everything that was acknowledged before the call, after it has confirmed that
// this node still leads. Concurrent calls share one round of messages. Errors are *Error.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	l, err := n.leader.established()
	if err != nil {
		return 0, err
	}
	return l.reads.waitConfirmed(ctx)
}

// leaderProof proves that a leadership still lasts.
type leaderProof struct {
	self        string
	ctx         context.Context //nolint:containedctx // that of the leadership
	term        uint64
	raft        *raft.Raft
	transport   *raftguard.Transport
	logs        raft.LogStore
	lastCommand *lastCommandIndex
	ledger      *fsm.FSM
	roster      *peers.Roster
	leader      *leaderFinder
}

// confirm confirms with a majority that this node still leads, and returns the commit index from before. The
// index is read first, so that everything acknowledged before the query is at or below it. raft's own verification
// counts answers to older messages; the transport's proof, which is based on when messages were sent, must therefore
// be true as well, and the verification is repeated until it does.
func (p *leaderProof) confirm() (uint64, error) {
	since, index := time.Now(), p.raft.CommitIndex()
	for {
		if err := p.raft.VerifyLeader().Error(); err != nil {
			return 0, p.leader.leadershipLostError(err)
		}
		proved := p.transport.AckedSince(p.term, since, p.roster.VoterIDs(), raft.ServerID(p.self))
		if p.raft.CurrentTerm() != p.term || p.raft.State() != raft.Leader || p.ctx.Err() != nil {
			return 0, p.leader.leadershipLostError(nil)
		}
		if proved {
			return p.lastCommand.atOrBelow(index, p.logs, p.ledger.Applied)
		}
	}
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
