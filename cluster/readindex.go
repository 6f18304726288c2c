package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// ReadIndex answers an index at or above everything that was acknowledged before the call, after it has made sure that
// this node still leads. Calls that come together share one round of messages. Errors are *Error.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	if err := n.serving(); err != nil {
		return 0, err
	}
	l := n.life.Load()
	if l == nil {
		return 0, n.refuseToLead()
	}
	return l.reads.join(ctx)
}

// confirm is one question to the majority: do I still lead? The index is taken first, so that nothing acknowledged
// before the question is above it. raft's own verification counts answers to older messages, so the guard's proof, by
// the time at which messages were sent, must hold as well; until then the question is repeated.
func (l *life) confirm() (uint64, error) {
	n := l.node
	since, index := time.Now(), n.raft.CommitIndex()
	for {
		if err := n.raft.VerifyLeader().Error(); err != nil {
			return 0, l.lost(err)
		}
		proved := n.guard.AckedSince(l.term, since, n.voters(), raft.ServerID(n.config.ID))
		if n.raft.CurrentTerm() != l.term || n.raft.State() != raft.Leader || l.ctx.Err() != nil {
			return 0, l.lost(nil)
		}
		if proved {
			return n.horizon.below(index, n.logs, n.ledger.Applied)
		}
	}
}

func (l *life) lost(cause error) error {
	e := failure(LeadershipLost, true, cause, "node %s lost the leadership before the read was confirmed", l.node.config.ID)
	e.Leader = l.node.leaderHint()
	return e
}

func (n *Node) voters() []raft.ServerID {
	var voters []raft.ServerID
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s.ID)
		}
	}
	return voters
}
