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
	// pollPause is how often a node asks the members for what they say of themselves, and pollSoon how often while it waits
	// for something that they have not said yet, which it does for at most pollEager.
	pollPause = 5 * time.Second
	pollSoon  = time.Second
	pollEager = 30 * time.Second
	// pollLeast is the least time between two rounds, however often gossip changes.
	pollLeast = 100 * time.Millisecond
	// answerAge is how old an answer may be when something is decided from it that is true only now.
	answerAge = 2*pollPause + checkPatience
	// strangersAsked is how many nodes that only gossip knows are asked in one round: anybody can make up names.
	strangersAsked = 16
)

// pollPeers asks the other nodes what they say of themselves for as long as this node serves. A leader asks them anyway, each
// second (examine).
func (n *Node) pollPeers() {
	started := time.Now()
	var last time.Time
	for n.ctx.Err() == nil {
		changed := n.gossiped.next()
		if n.life.Load() == nil {
			n.askAll(n.ctx, n.Members(), nil)
			last = time.Now()
		}
		pause := pollPause
		if n.pollsSoon(started) {
			pause = pollSoon
		}
		n.awaitPoll(changed, pause, last)
	}
}

// awaitPoll waits for the next round: until it is time, or until gossip has changed while this node looks for a cluster.
func (n *Node) awaitPoll(changed <-chan struct{}, pause time.Duration, last time.Time) {
	if n.raft.LastIndex() > 0 {
		after(n.ctx, pause)
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
		after(n.ctx, pollLeast-min(pollLeast, time.Since(last)))
	case <-timer.C:
	case <-n.ctx.Done():
	}
}

// pollsSoon tells whether this node waits for a cluster, for a first answer of a member, or for what the members found at its
// own newest checkpoint.
func (n *Node) pollsSoon(started time.Time) bool {
	if n.raft.LastIndex() == 0 || n.others.Load() == nil {
		return true
	}
	own, since := n.checkpoints.newest(n.config.ID)
	for _, s := range n.servers() {
		id := string(s.ID)
		switch {
		case id == n.config.ID:
		case time.Since(started) < pollEager && n.answers.find(id).said.IsZero():
			return true
		case time.Since(since) < pollEager && !n.checkpoints.has(id, own.Index):
			return true
		}
	}
	return false
}

// askAll asks nodes at once and takes in what they say. It returns the answers in the order of the members; what was not asked
// for has neither an answer nor an error. Of those that only gossip knows some are asked in each round.
func (n *Node) askAll(ctx context.Context, members []Member, each func(i int, sent time.Time, said Standing, err error)) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	servers := n.servers()
	var ids []string
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	n.answers.keepOnly(ids)
	n.parts.Discovery.Keep(serverIDs(servers))
	var asked sync.WaitGroup
	strangers := n.chooseStrangers(members, servers)
	for i, m := range members {
		if !isServer(servers, m.ID) && m.ID != n.config.ID && !slices.Contains(strangers, m.ID) {
			continue
		}
		asked.Go(func() {
			sent := time.Now()
			said, err := n.ask(ctx, m)
			if each != nil && n.ctx.Err() == nil {
				each(i, sent, said, err)
			}
		})
	}
	asked.Wait()
}

// chooseStrangers names nodes that are no members of raft's configuration: those that were not asked for the longest time.
func (n *Node) chooseStrangers(members []Member, servers []raft.Server) []string {
	var strangers []string
	for _, m := range members {
		if !isServer(servers, m.ID) && m.ID != n.config.ID {
			strangers = append(strangers, m.ID)
		}
	}
	slices.SortStableFunc(strangers, func(a, b string) int { return n.answers.find(a).tried.Compare(n.answers.find(b).tried) })
	return strangers[:min(len(strangers), strangersAsked)]
}

func serverIDs(servers []raft.Server) []string {
	ids := make([]string, len(servers))
	for i, s := range servers {
		ids[i] = string(s.ID)
	}
	return ids
}

func isServer(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
}

// ask asks one node how it stands and takes in what it says of itself.
func (n *Node) ask(ctx context.Context, m Member) (Standing, error) {
	if m.ID == n.config.ID {
		return n.Standing(), nil
	}
	others := n.others.Load()
	if others == nil {
		return Standing{}, errors.New("this node does not ask others yet")
	}
	at := n.whereToAsk(m)
	said, err := (*others).Standing(ctx, at)
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
	n.noteAnswer(n.reach, m.ID, err)
	changed := n.answers.record(m.ID, said, err)
	if err == nil {
		n.hear(said)
	}
	if changed {
		n.changed.wake()
	}
	return said, err
}

// whereToAsk is a member with the addresses to ask it at: those that are known, and every other time while it does not
// answer there those that gossip says, because it may have moved. The answer must be its own at either.
func (n *Node) whereToAsk(m Member) Member {
	p, known := n.directory.find(m.ID)
	if known && p.Alive && n.answers.find(m.ID).failures%2 == 1 {
		m.RaftAddr, m.HTTPAddr = p.RaftAddr, p.HTTPAddr
	}
	return m
}
