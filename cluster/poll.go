package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// pollInterval is how often a node asks the members for what they say of themselves, and eagerPollInterval how often while it waits
	// for something that they have not said yet, which it does for at most eagerPollPeriod.
	pollInterval      = 5 * time.Second
	eagerPollInterval = time.Second
	eagerPollPeriod   = 30 * time.Second
	// minPollInterval is the least time between two rounds, however often gossip changes.
	minPollInterval = 100 * time.Millisecond
	// maxAnswerAge is how old an answer may be when something is decided from it that is true only now.
	maxAnswerAge = 2*pollInterval + probeTimeout
	// maxNonMembersAsked is how many nodes that only gossip knows are asked in one round: anybody can make up names.
	maxNonMembersAsked = 16
)

// pollPeers asks the other nodes what they say of themselves for as long as this node serves. A leader asks them anyway, each
// second (examine).
func (n *Node) pollPeers() {
	started := time.Now()
	var last time.Time
	for n.ctx.Err() == nil {
		changed := n.gossipChanges.nextChange()
		if n.leadership.Load() == nil {
			n.queryMembers(n.ctx, n.Members(), nil)
			last = time.Now()
		}
		pause := pollInterval
		if n.shouldPollSoon(started) {
			pause = eagerPollInterval
		}
		n.awaitPoll(changed, pause, last)
	}
}

// awaitPoll waits for the next round: until it is time, or until gossip has changed while this node looks for a cluster.
func (n *Node) awaitPoll(changed <-chan struct{}, pause time.Duration, last time.Time) {
	if n.raft.LastIndex() > 0 {
		sleepContext(n.ctx, pause)
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
		sleepContext(n.ctx, minPollInterval-min(minPollInterval, time.Since(last)))
	case <-timer.C:
	case <-n.ctx.Done():
	}
}

// shouldPollSoon tells whether this node waits for a cluster, for a first answer of a member, or for what the members found at its
// own newest checkpoint.
func (n *Node) shouldPollSoon(started time.Time) bool {
	if n.raft.LastIndex() == 0 || n.peerClient.Load() == nil {
		return true
	}
	own, since := n.checkpoints.newestPoint(n.config.ID)
	for _, s := range n.servers() {
		id := string(s.ID)
		switch {
		case id == n.config.ID:
		case time.Since(started) < eagerPollPeriod && n.answers.findAnswer(id).answeredAt.IsZero():
			return true
		case time.Since(since) < eagerPollPeriod && !n.checkpoints.hasIndex(id, own.Index):
			return true
		}
	}
	return false
}

// queryMembers asks nodes at once and takes in what they say. It returns the answers in the order of the members; what was not asked
// for has neither an answer nor an error. Of those that only gossip knows some are asked in each round.
func (n *Node) queryMembers(ctx context.Context, members []Member, each func(i int, sent time.Time, said NodeStatus, err error)) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	servers := n.servers()
	var ids []string
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	n.answers.retainOnly(ids)
	n.parts.Discovery.KeepMembers(serverIDs(servers))
	var asked sync.WaitGroup
	strangers := n.chooseNonMembers(members, servers)
	for i, m := range members {
		if !containsServer(servers, m.ID) && m.ID != n.config.ID && !slices.Contains(strangers, m.ID) {
			continue
		}
		asked.Go(func() {
			sent := time.Now()
			said, err := n.queryMember(ctx, m)
			if each != nil && n.ctx.Err() == nil {
				each(i, sent, said, err)
			}
		})
	}
	asked.Wait()
}

// chooseNonMembers names nodes that are no members of raft's configuration: those that were not asked for the longest time.
func (n *Node) chooseNonMembers(members []Member, servers []raft.Server) []string {
	var strangers []string
	for _, m := range members {
		if !containsServer(servers, m.ID) && m.ID != n.config.ID {
			strangers = append(strangers, m.ID)
		}
	}
	slices.SortStableFunc(strangers, func(a, b string) int { return n.answers.findAnswer(a).askedAt.Compare(n.answers.findAnswer(b).askedAt) })
	return strangers[:min(len(strangers), maxNonMembersAsked)]
}

func serverIDs(servers []raft.Server) []string {
	ids := make([]string, len(servers))
	for i, s := range servers {
		ids[i] = string(s.ID)
	}
	return ids
}

func containsServer(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
}

// queryMember asks one node how it stands and takes in what it says of itself.
func (n *Node) queryMember(ctx context.Context, m Member) (NodeStatus, error) {
	if m.ID == n.config.ID {
		return n.Status(), nil
	}
	others := n.peerClient.Load()
	if others == nil {
		return NodeStatus{}, errors.New("this node does not ask others yet")
	}
	at := n.queryAddress(m)
	said, err := (*others).Status(ctx, at)
	switch {
	case err != nil:
	case said.ID != m.ID:
		err = fmt.Errorf("%s answers at %q, which should be the address of %s", said.ID, at.RaftAddr, m.ID)
	case said.ClusterName != "" && said.ClusterName != n.config.ClusterName:
		err = fmt.Errorf("%s is of cluster %q, not of %q", m.ID, said.ClusterName, n.config.ClusterName)
	}
	if n.ctx.Err() != nil {
		return said, err // it was not the node that failed
	}
	n.recordReachability(n.statusReachability, m.ID, err)
	changed := n.answers.recordAnswer(m.ID, said, err)
	if err == nil {
		n.processStatus(said)
	}
	if changed {
		n.changes.notifyAll()
	}
	return said, err
}

// queryAddress is a member with the addresses to ask it at: those that are known, and every other time while it does not
// answer there those that gossip says, because it may have moved. The answer must be its own at either.
func (n *Node) queryAddress(m Member) Member {
	p, known := n.directory.findPeer(m.ID)
	if known && p.Alive && n.answers.findAnswer(m.ID).failures%2 == 1 {
		m.RaftAddr, m.HTTPAddr = p.RaftAddr, p.HTTPAddr
	}
	return m
}
