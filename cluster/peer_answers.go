package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// peerAnswer is what another node last reported about itself over the peer service.
type peerAnswer struct {
	NodeStatus

	// answeredAt is when the node last answered, zero if never; askedAt is when it was last queried, and failures is the
	// number of queries since then without an answer.
	answeredAt, askedAt time.Time
	failures            int
	problem             string
}

// isCurrent reports whether the node answered the last query, no longer than maxAnswerAge ago.
func (a peerAnswer) isCurrent() bool {
	return a.failures == 0 && !a.answeredAt.IsZero() && time.Since(a.answeredAt) <= maxAnswerAge
}

// peerAnswers holds the last answers of the other nodes. Unlike the entries of peerDirectory, which come from gossip,
// each answer comes from the node itself, so decisions may be based on it (docs/adr/0053).
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

// recordAnswer stores the result of a query and reports whether anything changed that decisions depend on.
func (a *peerAnswers) recordAnswer(id string, status NodeStatus, err error) (changed bool) {
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
	now.NodeStatus, now.answeredAt, now.failures, now.problem = status, now.askedAt, 0, ""
	a.byID[id] = now
	return before.answeredAt.IsZero() || before.failures > 0 || !sameAnnouncement(before.NodeStatus, status)
}

// sameAnnouncement compares what nodes announce about themselves, without indices and clocks, which change all the
// time.
func sameAnnouncement(a, b NodeStatus) bool {
	return a.Version == b.Version && a.FeatureLevel == b.FeatureLevel && a.ClusterLevel == b.ClusterLevel &&
		a.RaftAddr == b.RaftAddr && a.HTTPAddr == b.HTTPAddr && a.ClusterName == b.ClusterName &&
		a.Instance == b.Instance &&
		a.Expect == b.Expect && a.Intent == b.Intent && (a.LastIndex == 0) == (b.LastIndex == 0)
}

// retainOnly forgets all other nodes, so that forged nodes do not accumulate.
func (a *peerAnswers) retainOnly(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.byID, func(id string, _ peerAnswer) bool { return !slices.Contains(ids, id) })
}

// knownFormat returns the newest format that a member understands according to its last answer; heard is false if it
// has not answered since this node started.
func (n *Node) knownFormat(s raft.Server) (level uint32, version string, heard bool) {
	if string(s.ID) == n.config.ID {
		own := n.directory.ownPeer()
		return own.FeatureLevel, own.Version, true
	}
	a := n.answers.findAnswer(string(s.ID))
	return a.FeatureLevel, a.Version, !a.answeredAt.IsZero()
}
