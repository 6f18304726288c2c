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
	// pollInterval is how often a node queries the members. eagerPollInterval applies while the node waits for an answer
	// that it has not got yet, for at most eagerPollPeriod.
	pollInterval      = 5 * time.Second
	eagerPollInterval = time.Second
	eagerPollPeriod   = 30 * time.Second
	// minPollInterval is the minimum time between two rounds of queries, however often gossip changes.
	minPollInterval = 100 * time.Millisecond
	// maxAnswerAge is the maximum age of an answer that a decision about the present may be based on.
	maxAnswerAge = 2*pollInterval + probeTimeout
	// maxNonMembersAsked is the number of nodes known only from gossip that are queried in one round. It is bounded
	// because node names can be forged.
	maxNonMembersAsked = 16
)

// pollPeers queries the other nodes for as long as this node serves. A leader queries them anyway, every probeInterval
// (probeAll).
func (n *Node) pollPeers() {
	started := time.Now()
	var last time.Time
	for n.ctx.Err() == nil {
		changed := n.gossipChanges.nextChange()
		if n.leadership.Load() == nil {
			n.queryMembers(n.ctx, n.Members(), nil)
			last = time.Now()
			if n.isDiskStalled() {
				n.changes.notifyAll() // raft reports no new leader now, so this node learns of it from the answers
			}
		}
		pause := pollInterval
		if n.shouldPollSoon(started) {
			pause = eagerPollInterval
		}
		n.awaitPoll(changed, pause, last)
	}
}

// awaitPoll waits for the next round: until it is due, or until gossip has changed while this node looks for a cluster.
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

// shouldPollSoon reports whether this node waits for a cluster, for the first answer of a member, or for the members'
// digests at its own newest checkpoint.
func (n *Node) shouldPollSoon(started time.Time) bool {
	if n.raft.LastIndex() == 0 || n.peerClient.Load() == nil || n.isDiskStalled() {
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

// queryMembers queries nodes in parallel and records their answers. For each node that was queried it calls each with
// the index in members. Only some of the nodes known from gossip alone are queried in each round.
func (n *Node) queryMembers(ctx context.Context, members []Member,
	each func(i int, sent time.Time, status NodeStatus, err error),
) {
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
	nonMembers := n.chooseNonMembers(members, servers)
	for i, m := range members {
		if !containsServer(servers, m.ID) && m.ID != n.config.ID && !slices.Contains(nonMembers, m.ID) {
			continue
		}
		asked.Go(func() {
			sent := time.Now()
			status, err := n.queryMember(ctx, m)
			if each != nil && n.ctx.Err() == nil {
				each(i, sent, status, err)
			}
		})
	}
	asked.Wait()
}

// chooseNonMembers returns the ids of nodes outside of raft's configuration to query: those not queried for the longest
// time.
func (n *Node) chooseNonMembers(members []Member, servers []raft.Server) []string {
	var nonMembers []string
	for _, m := range members {
		if !containsServer(servers, m.ID) && m.ID != n.config.ID {
			nonMembers = append(nonMembers, m.ID)
		}
	}
	slices.SortStableFunc(nonMembers, func(a, b string) int {
		return n.answers.findAnswer(a).askedAt.Compare(n.answers.findAnswer(b).askedAt)
	})
	return nonMembers[:min(len(nonMembers), maxNonMembersAsked)]
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

// queryMember queries the status of one node and records it.
func (n *Node) queryMember(ctx context.Context, m Member) (NodeStatus, error) {
	if m.ID == n.config.ID {
		return n.Status(), nil
	}
	client := n.peerClient.Load()
	if client == nil {
		return NodeStatus{}, errors.New("this node cannot query others yet")
	}
	at := n.queryAddress(m)
	status, err := (*client).Status(ctx, at)
	switch {
	case err != nil:
	case status.ID != m.ID:
		err = fmt.Errorf("%s answers at %q, which should be the address of %s", status.ID, at.RaftAddr, m.ID)
	case status.ClusterName != "" && status.ClusterName != n.config.ClusterName:
		err = fmt.Errorf("%s is of cluster %q, not of %q", m.ID, status.ClusterName, n.config.ClusterName)
	}
	if n.ctx.Err() != nil {
		return status, err // the query was canceled; the other node did not fail
	}
	n.recordReachability(n.statusReachability, m.ID, err)
	changed := n.answers.recordAnswer(m.ID, status, err)
	if err == nil {
		n.recordLeaderTime(m.ID, status.LedgerTime)
		n.processStatus(status)
	}
	if changed {
		n.changes.notifyAll()
	}
	return status, err
}

// queryAddress returns m with the addresses to query it at: the known ones, and after a failure alternately those from
// gossip, because the node may have moved. In both cases the answer must come from m itself.
func (n *Node) queryAddress(m Member) Member {
	p, known := n.directory.findPeer(m.ID)
	if known && p.Alive && n.answers.findAnswer(m.ID).failures%2 == 1 {
		m.RaftAddr, m.HTTPAddr = p.RaftAddr, p.HTTPAddr
	}
	return m
}
