package peers

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Answer is what another node last reported about itself over the peer service.
type Answer struct {
	NodeStatus

	// AnsweredAt is when the node last answered, zero if never; AskedAt is when it was last queried, and Failures is the
	// number of queries since then without an answer.
	AnsweredAt, AskedAt time.Time
	Failures            int
	// Failure is the error of the last query, empty if it was answered.
	Failure string

	maxAge time.Duration
}

// IsCurrent reports whether the node answered the last query, not too long ago.
func (a Answer) IsCurrent() bool {
	return a.Failures == 0 && !a.AnsweredAt.IsZero() && time.Since(a.AnsweredAt) <= a.maxAge
}

// Answers keeps the last answers of the other nodes. Unlike the entries of Directory, which come from gossip,
// each answer comes from the node itself, so decisions may be based on it (docs/adr/0053).
type Answers struct {
	maxAge time.Duration

	mu   sync.Mutex
	byID map[string]Answer
}

// NewAnswers returns no answers. Each is current for maxAge at most.
func NewAnswers(maxAge time.Duration) *Answers {
	return &Answers{maxAge: maxAge, byID: map[string]Answer{}}
}

// Find returns the last answer of a node, or zero.
func (a *Answers) Find(id string) Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byID[id]
}

// Record stores the result of a query and reports whether anything changed that decisions depend on.
func (a *Answers) Record(id string, status NodeStatus, err error) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.byID[id]
	now := before
	now.AskedAt, now.maxAge = time.Now(), a.maxAge
	if err != nil {
		now.Failures++
		now.Failure = err.Error()
		a.byID[id] = now
		return before.Failures == 0
	}
	now.NodeStatus, now.AnsweredAt, now.Failures, now.Failure = status, now.AskedAt, 0, ""
	a.byID[id] = now
	return before.AnsweredAt.IsZero() || before.Failures > 0 || !sameAnnouncement(before.NodeStatus, status)
}

// sameAnnouncement compares what nodes announce about themselves, without indices and clocks, which change all the
// time.
func sameAnnouncement(a, b NodeStatus) bool {
	return a.Version == b.Version && a.FeatureLevel == b.FeatureLevel && a.ClusterLevel == b.ClusterLevel &&
		a.RaftAddr == b.RaftAddr && a.HTTPAddr == b.HTTPAddr && a.ClusterName == b.ClusterName &&
		a.Instance == b.Instance &&
		a.Expect == b.Expect && a.Intent == b.Intent && (a.LastIndex == 0) == (b.LastIndex == 0)
}

// RetainOnly forgets all other nodes, so that forged nodes do not accumulate.
func (a *Answers) RetainOnly(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.byID, func(id string, _ Answer) bool { return !slices.Contains(ids, id) })
}
