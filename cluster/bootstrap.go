package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

const (
	bootstrapLook   = time.Second
	bootstrapRemind = 30 * time.Second
	// bootstrapAsk is how long a new node waits until every node that gossip knows was asked once.
	bootstrapAsk = 10 * time.Second
	intentBytes  = 8
)

// verdict is what a node without state concludes from what it hears.
type verdict struct {
	// form is the configuration to start a cluster with now; empty means wait.
	form []raft.Server
	// intent is what to announce from now on; empty means nothing yet.
	intent string
	// never is true if a cluster exists already: this node is to be added to it.
	never bool
	// wait says what for, for the log.
	wait string
}

// deliberate decides whether self may form a new cluster with the peers, as they described themselves.
//
// Nodes hear of each other at different times, so each first announces the one set of nodes that it would start with,
// and forms it only when all of that set have announced the same. A node announces one set only, so two sets that
// share a node can never both start: there is one cluster, or none and a message that says why.
func deliberate(self Peer, peers []Peer) verdict {
	candidates := []Peer{self}
	for _, p := range peers {
		if p.HasState {
			return verdict{never: true, wait: fmt.Sprintf("%s belongs to a cluster already", p.ID)}
		}
		if p.Expect == 0 {
			continue
		}
		if p.Expect != self.Expect {
			return verdict{intent: self.Intent, wait: fmt.Sprintf(
				"%s expects %d nodes and this one %d; start all of them with the same number", p.ID, p.Expect, self.Expect)}
		}
		candidates = append(candidates, p)
	}
	if len(candidates) != self.Expect {
		return verdict{intent: self.Intent, wait: fmt.Sprintf("%d of %d expected nodes are here", len(candidates), self.Expect)}
	}
	slices.SortFunc(candidates, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	intent := digest(candidates)
	if self.Intent != "" && self.Intent != intent {
		return verdict{intent: self.Intent, wait: "other nodes came than were here first; stop all nodes of the new " +
			"cluster, then start exactly as many as are expected"}
	}
	for _, c := range candidates {
		if c.ID != self.ID && c.Intent != intent {
			return verdict{intent: intent, wait: fmt.Sprintf("%s has not agreed yet", c.ID)}
		}
	}
	if self.Intent != intent {
		return verdict{intent: intent, wait: "this node has not announced its agreement yet"}
	}
	return verdict{intent: intent, form: voters(candidates)}
}

func digest(candidates []Peer) string {
	var text strings.Builder
	for _, c := range candidates {
		fmt.Fprintf(&text, "%s %s\n", c.ID, c.RaftAddr)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:intentBytes])
}

func voters(candidates []Peer) []raft.Server {
	servers := make([]raft.Server, len(candidates))
	for i, c := range candidates {
		servers[i] = raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(c.ID), Address: raft.ServerAddress(c.RaftAddr),
		}
	}
	return servers
}

// bootstrap runs on a node that started without state, until it has some: formed here, or received from a leader.
func (n *Node) bootstrap() {
	var reminded time.Time
	var v verdict
	for n.raft.LastIndex() == 0 {
		changed := n.changed.next()
		// Once a cluster is known to exist this process never forms another, even if nobody of it is heard any more.
		if !v.never {
			v = n.consider()
		}
		wait := v.wait
		n.waits.Store(&wait)
		if v.wait != "" && time.Since(reminded) >= bootstrapRemind {
			n.log.Info("no cluster yet", "waiting", v.wait)
			reminded = time.Now()
		}
		timer := time.NewTimer(bootstrapLook)
		select {
		case <-changed:
		case <-timer.C:
		case <-n.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
	n.waits.Store(nil)
	if err := n.directory.announce(func(p *Peer) { p.HasState = true }); err != nil {
		n.log.Warn("cannot announce that this node has joined", "error", err)
	}
}

// consider takes one step towards a cluster.
func (n *Node) consider() verdict {
	if n.newcomer.lost != "" { // its cluster exists, or existed
		return verdict{never: true, wait: n.newcomer.plea(n.config.ID)}
	}
	self := n.directory.me()
	if self.Expect == 0 {
		return verdict{wait: "this node was told to wait until a leader adds it (BootstrapExpect is 0)"}
	}
	candidates, unasked, silent := n.candidates()
	if unasked != "" && time.Since(n.started) < bootstrapAsk {
		return verdict{intent: self.Intent, wait: unasked + " was not asked yet"}
	}
	v := deliberate(self, candidates)
	if v.wait != "" && silent != "" {
		v.wait += "; gossip knows one that does not answer: " + silent
	}
	if v.never {
		v.wait += "; this node waits until its leader adds it"
		return v
	}
	if v.intent != self.Intent {
		n.found()
		if err := n.directory.announce(func(p *Peer) { p.Intent = v.intent }); err != nil {
			n.log.Warn("cannot announce the nodes of the new cluster", "error", err)
		}
		n.changed.wake()
		return verdict{}
	}
	if len(v.form) > 0 {
		n.form(v.form)
		return verdict{}
	}
	return v
}

// candidates are the nodes that gossip knows, as they described themselves when they were asked a moment ago: gossip can say
// anything of anybody. A node that does not answer counts for nothing; unasked is one that was not asked yet, and silent is why one
// of the others did not answer.
func (n *Node) candidates() (list []Peer, unasked, silent string) {
	for _, p := range n.directory.alive() {
		switch a := n.answers.find(p.ID); {
		case a.tried.IsZero():
			unasked = p.ID
		case a.isCurrent():
			list = append(list, a.describe(p))
		default:
			silent = a.problem
		}
	}
	return list, unasked, silent
}

// describe is what a node that answered says of itself. Versions below feature level 5 leave to gossip what they do not answer.
func (a answer) describe(gossiped Peer) Peer {
	p := gossiped
	p.HasState = a.LastIndex > 0
	if a.RaftAddr != "" {
		p.RaftAddr, p.HTTPAddr, p.Expect, p.Intent = a.RaftAddr, a.HTTPAddr, a.Expect, a.Intent
	}
	return p
}

func (n *Node) form(servers []raft.Server) {
	err := n.raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return // a leader was quicker, and this node has its configuration
	}
	if err != nil {
		n.log.Error("cannot form the cluster", "error", err)
		return
	}
	n.log.Info("formed a cluster", "name", n.config.ClusterName, "servers", len(servers))
	n.changed.wake()
	n.hasten()
}
