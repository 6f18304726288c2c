package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// answer is what another node last said of itself when this node asked it over the peer service.
type answer struct {
	Standing

	// said is when it answered, zero if it never did; tried is when it was asked last, and failures is how many times in a
	// row it has not answered since.
	said, tried time.Time
	failures    int
	problem     string
}

// isCurrent tells whether the node answered when it was last asked, and not longer than answerAge ago.
func (a answer) isCurrent() bool {
	return a.failures == 0 && !a.said.IsZero() && time.Since(a.said) <= answerAge
}

// answers keeps what the other nodes said of themselves. Unlike the directory, which repeats gossip, everything in it was
// said by the node itself, so decisions are made from it (docs/adr/0053).
type answers struct {
	mu   sync.Mutex
	byID map[string]answer
}

func newAnswers() *answers { return &answers{byID: map[string]answer{}} }

func (a *answers) find(id string) answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byID[id]
}

// record keeps how one node answered, and tells whether anything that decisions depend on has changed.
func (a *answers) record(id string, said Standing, err error) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.byID[id]
	now := before
	now.tried = time.Now()
	if err != nil {
		now.failures++
		now.problem = err.Error()
		a.byID[id] = now
		return before.failures == 0
	}
	now.Standing, now.said, now.failures, now.problem = said, now.tried, 0, ""
	a.byID[id] = now
	return before.said.IsZero() || before.failures > 0 || !sameStatement(before.Standing, said)
}

// sameStatement compares what a node announces of itself; indices and clocks move all the time.
func sameStatement(a, b Standing) bool {
	return a.Version == b.Version && a.FeatureLevel == b.FeatureLevel && a.ClusterLevel == b.ClusterLevel &&
		a.RaftAddr == b.RaftAddr && a.HTTPAddr == b.HTTPAddr && a.ClusterName == b.ClusterName && a.Instance == b.Instance &&
		a.Expect == b.Expect && a.Intent == b.Intent && (a.LastIndex == 0) == (b.LastIndex == 0)
}

// keepOnly forgets all nodes but these, so that nodes that somebody made up do not stay.
func (a *answers) keepOnly(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.byID, func(id string, _ answer) bool { return !slices.Contains(ids, id) })
}

// understands is the newest format that a member said it understands, since this node started; false if it said nothing.
func (n *Node) understands(s raft.Server) (level uint32, version string, heard bool) {
	if string(s.ID) == n.config.ID {
		own := n.directory.me()
		return own.FeatureLevel, own.Version, true
	}
	a := n.answers.find(string(s.ID))
	return a.FeatureLevel, a.Version, !a.said.IsZero()
}
