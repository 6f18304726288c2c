package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// peerAnswer is what another node last said of itself when this node asked it over the peer service.
type peerAnswer struct {
	NodeStatus

	// answeredAt is when it answered, zero if it never did; tried is when it was asked last, and failures is how many times in a
	// row it has not answered since.
	answeredAt, askedAt time.Time
	failures            int
	problem             string
}

// isCurrent tells whether the node answered when it was last asked, and not longer than maxAnswerAge ago.
func (a peerAnswer) isCurrent() bool {
	return a.failures == 0 && !a.answeredAt.IsZero() && time.Since(a.answeredAt) <= maxAnswerAge
}

// peerAnswers keeps what the other nodes said of themselves. Unlike the directory, which repeats gossip, everything in it was
// said by the node itself, so decisions are made from it (docs/adr/0053).
type peerAnswers struct {
	mu   sync.Mutex
	byID map[string]peerAnswer
}

func newPeerAnswers() *peerAnswers { return &peerAnswers{byID: map[string]peerAnswer{}} }

func (a *peerAnswers) findAnswer(id string) peerAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byID[id]
}

// recordAnswer keeps how one node answered, and tells whether anything that decisions depend on has changed.
func (a *peerAnswers) recordAnswer(id string, said NodeStatus, err error) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.byID[id]
	now := before
	now.askedAt = time.Now()
	if err != nil {
		now.failures++
		now.problem = err.Error()
		a.byID[id] = now
		return before.failures == 0
	}
	now.NodeStatus, now.answeredAt, now.failures, now.problem = said, now.askedAt, 0, ""
	a.byID[id] = now
	return before.answeredAt.IsZero() || before.failures > 0 || !sameAnnouncement(before.NodeStatus, said)
}

// sameAnnouncement compares what a node announces of itself; indices and clocks move all the time.
func sameAnnouncement(a, b NodeStatus) bool {
	return a.Version == b.Version && a.FeatureLevel == b.FeatureLevel && a.ClusterLevel == b.ClusterLevel &&
		a.RaftAddr == b.RaftAddr && a.HTTPAddr == b.HTTPAddr && a.ClusterName == b.ClusterName && a.Instance == b.Instance &&
		a.Expect == b.Expect && a.Intent == b.Intent && (a.LastIndex == 0) == (b.LastIndex == 0)
}

// retainOnly forgets all nodes but these, so that nodes that somebody made up do not stay.
func (a *peerAnswers) retainOnly(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.byID, func(id string, _ peerAnswer) bool { return !slices.Contains(ids, id) })
}

// knownFormat is the newest format that a member said it understands, since this node started; false if it said nothing.
func (n *Node) knownFormat(s raft.Server) (level uint32, version string, heard bool) {
	if string(s.ID) == n.config.ID {
		own := n.directory.ownPeer()
		return own.FeatureLevel, own.Version, true
	}
	a := n.answers.findAnswer(string(s.ID))
	return a.FeatureLevel, a.Version, !a.answeredAt.IsZero()
}
