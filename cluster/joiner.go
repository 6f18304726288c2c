package cluster

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
	"github.com/quorate/quorate/cluster/raftguard"
)

// joinState is what a node without state waits for, and what it must remember until it is a voter.
type joinState struct {
	stable raft.StableStore
	// gate is nil on a node that started with state.
	gate *raftguard.JoinGate
	// lost describes the state that the node had and lost; empty if it never had state. Set before the node starts.
	lost              string
	instance          string
	promoteWhenStable atomic.Bool
	admittedAt        atomic.Uint64 // see Notice.Index
}

type joiner struct {
	self      string
	log       hclog.Logger
	started   time.Time
	service   *service
	join      *joinState
	raft      *raft.Raft
	roster    *peers.Roster
	leader    *leaderFinder
	admission *admission
	changes   *changeNotifier

	noticeLock sync.Mutex
	// removed is set once a leader has told this node that it is no longer a member.
	removed atomic.Bool
}

// promotionKey is the key in the stable store under which a node remembers that it is to become a voter.
var promotionKey = []byte("quorate-candidate")

// admissionKey is the key in the stable store of Notice.Index, which counts while promotionKey is set.
var admissionKey = []byte("quorate-candidate-index")

// Notice informs a node of its role in the configuration. Only the leader sends notices.
type Notice struct {
	// Leader is the id of the leader. From is the id in the sender's certificate; empty in plain text.
	Leader, From string
	// Instance is the instance of a node without state that this notice addresses: after that instance had started, the
	// configuration contained the node as a non-voter, so votes of an earlier instance no longer count. Empty if the node
	// is not a member.
	Instance string
	// PromoteWhenStable is true if the node is to become a voter once it is stable.
	PromoteWhenStable bool
	// Index is at or above the entry of the log that made the node a non-voter; 0 if the leader's version does not tell.
	Index uint64
}

// guard puts a node without state behind a JoinGate: until the node is admitted, or agrees with others to form
// a new cluster, it receives no raft messages (docs/adr/0038).
func (j *joinState) guard(transport raft.Transport, hasState bool) raft.Transport {
	if hasState {
		// raft reads the same store when it starts and fails if the store is damaged.
		wanted, err := j.stable.GetUint64(promotionKey)
		j.promoteWhenStable.Store(err == nil && wanted == 1)
		if index, err := j.stable.GetUint64(admissionKey); err == nil {
			j.admittedAt.Store(index)
		}
		return transport
	}
	j.instance = rand.Text()
	j.gate = raftguard.NewJoinGate(transport)
	return j.gate
}

// waitingInstance returns the instance of a node that must still be admitted; empty for any other node.
func (j *joinState) waitingInstance() string {
	if j.gate == nil || j.gate.IsOpen() {
		return ""
	}
	return j.instance
}

// waitMessage says what a node that waits for its admission needs.
func (j *joinState) waitMessage(id string) string {
	if j.lost == "" {
		return fmt.Sprintf("node %s has no data and waits until the leader of a cluster adds it", id)
	}
	return fmt.Sprintf("node %s has lost data (%s): it neither votes nor confirms anything, and waits until the leader "+
		"of its cluster has demoted it and admits it again; if no majority of the others is left, see \"A "+
		"data folder that "+
		"lost a part\" in docs/operations.md", id, j.lost)
}

func (j *joinState) close() error {
	if j.gate == nil {
		return nil
	}
	return j.gate.Close()
}

// open is for a node that is about to announce the cluster that it helps to form.
func (j *joinState) open() {
	if j.gate != nil {
		j.gate.Open()
	}
}

// Notify applies a notice of the leader. It is idempotent; a notice for an earlier instance of this node has no effect.
func (n *Node) Notify(notice Notice) error { return n.joiner.apply(notice) }

func (j *joiner) apply(notice Notice) error {
	j.noticeLock.Lock()
	defer j.noticeLock.Unlock()
	if err := j.service.check(); err != nil {
		return err
	}
	if err := j.admission.checkNotice(notice); err != nil {
		return err
	}
	if notice.Instance == "" {
		j.markRemoved(notice)
		return nil
	}
	if j.join.waitingInstance() != notice.Instance {
		return nil
	}
	if notice.PromoteWhenStable {
		err := j.join.stable.SetUint64(admissionKey, notice.Index)
		if err == nil {
			err = j.join.stable.SetUint64(promotionKey, 1)
		}
		if err != nil {
			return newError(Halted, true, err, "node %s cannot write to its disk", j.self)
		}
		j.join.admittedAt.Store(notice.Index)
		j.join.promoteWhenStable.Store(true)
	}
	j.log.Info("admitted by the leader", "leader", notice.Leader, "to-become-voter", notice.PromoteWhenStable)
	j.join.gate.Open()
	j.changes.notifyAll()
	return nil
}

// markRemoved records that this node was removed. A node that knows a leader belongs to another cluster and ignores the
// notice.
func (j *joiner) markRemoved(notice Notice) {
	if _, known := j.leader.find(); known || j.join.waitingInstance() != "" || j.removed.Swap(true) {
		return
	}
	j.log.Warn("this node is no longer a member of the cluster", "reason", j.removedError(), "leader", notice.Leader)
}

func (j *joiner) removedError() *Error {
	return newError(NoLeader, true, nil, "node %s was removed from the cluster; stop it; to add it again as a new "+
		"member, empty its data folder and start it", j.self)
}

// watchPromotion clears the mark of promotionKey once the node is a voter, so that a node that is demoted later is not
// promoted again.
func (j *joiner) watchPromotion(ready func() error) {
	for sleepContext(j.service.ctx, leaderRetry) {
		if !j.join.promoteWhenStable.Load() || ready() != nil || !j.isPromoted() {
			continue
		}
		if err := j.join.stable.SetUint64(promotionKey, 0); err != nil {
			return // the fail-stop store stops the node
		}
		j.join.promoteWhenStable.Store(false)
		j.log.Info("this node is a voter", "since", time.Since(j.started).Round(time.Second))
	}
}

// isPromoted reports whether a node that was admitted is a voter. A snapshot or older entries may still name it as the
// voter that it was before it lost its data: they say nothing before the entry of its demotion is applied as well. The
// ledger may be up to date without that entry, which does not concern it.
func (j *joiner) isPromoted() bool {
	return j.raft.AppliedIndex() >= j.join.admittedAt.Load() && j.roster.IsVoter(j.self)
}
