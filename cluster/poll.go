package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
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

type poller struct {
	self, cluster string
	service       *service
	raft          *raft.Raft
	discovery     Discovery
	directory     *peers.Directory
	answers       *peers.Answers
	roster        *peers.Roster
	leader        *leaderFinder
	disk          *diskMonitor
	levels        *levels
	times         *timeSource
	checkpoints   *checkpoints
	comparison    *comparison
	changes       *changeNotifier
	// ownStatus is what this node would answer.
	ownStatus func() NodeStatus
	client    atomic.Pointer[PeerClient]
	// reachability tracks which members answer.
	reachability *peers.Reachability
	// gossipChanges is notified of news from gossip.
	gossipChanges changeNotifier
}

// run queries the other nodes for as long as this node serves. A leader queries them anyway, every probeInterval
// (probeAll).
func (p *poller) run() {
	started := time.Now()
	var last time.Time
	for p.service.ctx.Err() == nil {
		changed := p.gossipChanges.nextChange()
		p.reachability.Retain(p.roster.ServerIDs())
		if p.leader.own.Load() == nil {
			p.queryAll(p.service.ctx, p.roster.Members(), nil)
			last = time.Now()
			if p.disk.isStalled() {
				p.changes.notifyAll() // raft reports no new leader now, so this node learns of it from the answers
			}
		}
		pause := pollInterval
		if p.shouldPollSoon(started) {
			pause = eagerPollInterval
		}
		p.awaitPoll(changed, pause, last)
	}
}

// awaitPoll waits for the next round: until it is due, or until gossip has changed while this node looks for a cluster.
func (p *poller) awaitPoll(changed <-chan struct{}, pause time.Duration, last time.Time) {
	if p.raft.LastIndex() > 0 {
		sleepContext(p.service.ctx, pause)
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
		sleepContext(p.service.ctx, minPollInterval-min(minPollInterval, time.Since(last)))
	case <-timer.C:
	case <-p.service.ctx.Done():
	}
}

// shouldPollSoon reports whether this node waits for a cluster, for the first answer of a member, or for the members'
// digests at its own newest checkpoint.
func (p *poller) shouldPollSoon(started time.Time) bool {
	if p.raft.LastIndex() == 0 || p.client.Load() == nil || p.disk.isStalled() {
		return true
	}
	own, since := p.checkpoints.newestPoint(p.self)
	for _, s := range p.roster.Servers() {
		id := string(s.ID)
		switch {
		case id == p.self:
		case time.Since(started) < eagerPollPeriod && p.answers.Find(id).AnsweredAt.IsZero():
			return true
		case time.Since(since) < eagerPollPeriod && !p.checkpoints.hasIndex(id, own.Index):
			return true
		}
	}
	return false
}

// queryAll calls each with the index in members, for each node that was queried. Only some of the nodes known from
// gossip alone are queried in each round.
func (p *poller) queryAll(ctx context.Context, members []Member,
	each func(i int, sent time.Time, status NodeStatus, err error),
) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	servers := p.roster.Servers()
	var ids []string
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	p.answers.RetainOnly(ids)
	p.discovery.KeepMembers(peers.IDs(servers))
	var asked sync.WaitGroup
	nonMembers := p.chooseNonMembers(members, servers)
	for i, m := range members {
		if !peers.Contains(servers, m.ID) && m.ID != p.self && !slices.Contains(nonMembers, m.ID) {
			continue
		}
		asked.Go(func() {
			sent := time.Now()
			status, err := p.query(ctx, m)
			if each != nil && p.service.ctx.Err() == nil {
				each(i, sent, status, err)
			}
		})
	}
	asked.Wait()
}

// chooseNonMembers returns the ids of nodes outside of raft's configuration to query: those not queried for the longest
// time.
func (p *poller) chooseNonMembers(members []Member, servers []raft.Server) []string {
	var nonMembers []string
	for _, m := range members {
		if !peers.Contains(servers, m.ID) && m.ID != p.self {
			nonMembers = append(nonMembers, m.ID)
		}
	}
	slices.SortStableFunc(nonMembers, func(a, b string) int {
		return p.answers.Find(a).AskedAt.Compare(p.answers.Find(b).AskedAt)
	})
	return nonMembers[:min(len(nonMembers), maxNonMembersAsked)]
}

func (p *poller) query(ctx context.Context, m Member) (NodeStatus, error) {
	if m.ID == p.self {
		return p.ownStatus(), nil
	}
	client := p.client.Load()
	if client == nil {
		return NodeStatus{}, errors.New("this node cannot query others yet")
	}
	at := p.queryAddress(m)
	status, err := (*client).Status(ctx, at)
	switch {
	case err != nil:
	case status.ID != m.ID:
		err = fmt.Errorf("%s answers at %q, which should be the address of %s", status.ID, at.RaftAddr, m.ID)
	case status.ClusterName != "" && status.ClusterName != p.cluster:
		err = fmt.Errorf("%s is of cluster %q, not of %q", m.ID, status.ClusterName, p.cluster)
	}
	if p.service.ctx.Err() != nil {
		return status, err // the query was canceled; the other node did not fail
	}
	isMember := p.roster.Contains(m.ID)
	if isMember { // other nodes come and go with gossip
		p.reachability.Record(m.ID, err)
	}
	changed := p.answers.Record(m.ID, status, err)
	if err == nil {
		p.times.record(m.ID, status.LedgerTime)
		if isMember {
			p.levels.warnAbout(status)
			p.comparison.record(status)
		}
	}
	if changed {
		p.changes.notifyAll()
	}
	return status, err
}

// queryAddress returns m with the addresses to query it at: the known ones, and after a failure alternately those from
// gossip, because the node may have moved. In both cases the answer must come from m itself.
func (p *poller) queryAddress(m Member) Member {
	peer, known := p.directory.Find(m.ID)
	if known && peer.Alive && p.answers.Find(m.ID).Failures%2 == 1 {
		m.RaftAddr, m.HTTPAddr = peer.RaftAddr, peer.HTTPAddr
	}
	return m
}
