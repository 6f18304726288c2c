package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/internal/peers"
)

const (
	bootstrapInterval = time.Second
	reminderInterval  = 30 * time.Second
	// bootstrapProbeWait is how long a new node waits until each node known from gossip was queried once.
	bootstrapProbeWait = 10 * time.Second
	intentBytes        = 8
)

// bootstrapDecision is what a node without state concludes from the answers of its peers.
type bootstrapDecision struct {
	// servers is the configuration to start a new cluster with now; empty if the node must wait.
	servers []raft.Server
	// intent is the digest to announce from now on; empty if there is none yet.
	intent string
	// clusterExists is true if a cluster exists already, so that this node must be added to it.
	clusterExists bool
	// waitReason says what the node waits for.
	waitReason string
}

// decideBootstrap decides whether self may form a new cluster with peers, given how the peers described themselves.
//
// Nodes discover each other at different times. Each node therefore first announces the one set of nodes that it would
// start with, and forms the cluster only when all members of that set have announced the same set. A process announces
// only one set, so two sets that share a node can never both start: either one cluster forms, or none and the log says
// why.
func decideBootstrap(self Peer, peers []Peer) bootstrapDecision {
	candidates := []Peer{self}
	for _, p := range peers {
		if p.HasState {
			return bootstrapDecision{
				clusterExists: true,
				waitReason:    fmt.Sprintf("%s belongs to a cluster already", p.ID),
			}
		}
		if p.Expect == 0 {
			continue
		}
		if p.Expect != self.Expect {
			return bootstrapDecision{intent: self.Intent, waitReason: fmt.Sprintf(
				"%s expects %d nodes and this one %d; start all of them with the same number", p.ID,
				p.Expect, self.Expect)}
		}
		candidates = append(candidates, p)
	}
	if len(candidates) != self.Expect {
		return bootstrapDecision{intent: self.Intent, waitReason: fmt.Sprintf("%d of %d expected nodes are here",
			len(candidates), self.Expect)}
	}
	slices.SortFunc(candidates, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	intent := intentDigest(candidates)
	if self.Intent != "" && self.Intent != intent {
		return bootstrapDecision{
			intent: self.Intent,
			waitReason: "the set of nodes has changed since this node announced " +
				"it; stop all nodes of the new cluster, then start exactly as many as are expected",
		}
	}
	for _, c := range candidates {
		if c.ID != self.ID && c.Intent != intent {
			return bootstrapDecision{intent: intent, waitReason: fmt.Sprintf("%s has not agreed yet", c.ID)}
		}
	}
	if self.Intent != intent {
		return bootstrapDecision{intent: intent, waitReason: "this node has not announced its agreement yet"}
	}
	return bootstrapDecision{intent: intent, servers: voterServers(candidates)}
}

func intentDigest(candidates []Peer) string {
	var text strings.Builder
	for _, c := range candidates {
		fmt.Fprintf(&text, "%s %s\n", c.ID, c.RaftAddr)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:intentBytes])
}

func voterServers(candidates []Peer) []raft.Server {
	servers := make([]raft.Server, len(candidates))
	for i, c := range candidates {
		servers[i] = raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(c.ID), Address: raft.ServerAddress(c.RaftAddr),
		}
	}
	return servers
}

type bootstrapper struct {
	self      string
	cluster   string
	log       hclog.Logger
	started   time.Time
	raft      *raft.Raft
	directory *peers.Directory
	answers   *peers.Answers
	join      *joinState
	elections *elections
	changes   *changeNotifier
	// wait is what a node without a cluster waits for; nil once it has one.
	wait atomic.Pointer[string]
}

// run runs until the node has state, because it formed a cluster or because a leader sent it entries.
func (b *bootstrapper) run(ctx context.Context) {
	var reminded time.Time
	var v bootstrapDecision
	for b.raft.LastIndex() == 0 {
		changed := b.changes.nextChange()
		// Once a cluster is known to exist, this process never forms another one, even if no member of it is reachable any
		// more.
		if !v.clusterExists {
			v = b.step()
		}
		wait := v.waitReason
		b.wait.Store(&wait)
		if v.waitReason != "" && time.Since(reminded) >= reminderInterval {
			b.log.Info("no cluster yet", "waiting", v.waitReason)
			reminded = time.Now()
		}
		if !waitForChange(ctx, changed, bootstrapInterval) {
			return
		}
	}
	b.wait.Store(nil)
	if err := b.directory.Announce(func(p *Peer) { p.HasState = true }); err != nil {
		b.log.Warn("cannot announce that this node has joined", "error", err)
	}
}

func (b *bootstrapper) step() bootstrapDecision {
	if b.join.lost != "" { // this node's cluster exists, or existed
		return bootstrapDecision{clusterExists: true, waitReason: b.join.waitMessage(b.self)}
	}
	self := b.directory.Own()
	if self.Expect == 0 {
		return bootstrapDecision{waitReason: "this node was told to wait until a leader adds it (BootstrapExpect is 0)"}
	}
	candidates, unasked, silent := b.candidates()
	if unasked != "" && time.Since(b.started) < bootstrapProbeWait {
		return bootstrapDecision{intent: self.Intent, waitReason: unasked + " has not been queried yet"}
	}
	v := decideBootstrap(self, candidates)
	if v.waitReason != "" && silent != "" {
		v.waitReason += "; a node known from gossip does not answer: " + silent
	}
	if v.clusterExists {
		v.waitReason += "; this node waits until its leader adds it"
		return v
	}
	if v.intent != self.Intent {
		b.join.open()
		if err := b.directory.Announce(func(p *Peer) { p.Intent = v.intent }); err != nil {
			b.log.Warn("cannot announce the nodes of the new cluster", "error", err)
		}
		b.changes.notifyAll()
		return bootstrapDecision{}
	}
	if len(v.servers) > 0 {
		b.form(v.servers)
		return bootstrapDecision{}
	}
	return v
}

// candidates returns the nodes known from gossip as they described themselves when they were last queried,
// because gossip messages can be forged. Nodes that do not answer are left out; unasked names one that was not queried
// yet, and silent is the error of one that did not answer.
func (b *bootstrapper) candidates() (list []Peer, unasked, silent string) {
	for _, p := range b.directory.Alive() {
		switch a := b.answers.Find(p.ID); {
		case a.AskedAt.IsZero():
			unasked = p.ID
		case a.IsCurrent():
			list = append(list, toPeer(a, p))
		default:
			silent = a.Failure
		}
	}
	return list, unasked, silent
}

// toPeer converts the node's own report about itself. Versions below feature level 5 omit fields that they announce by
// gossip; these are taken from gossiped.
func toPeer(a peers.Answer, gossiped Peer) Peer {
	p := gossiped
	p.HasState = a.LastIndex > 0
	if a.RaftAddr != "" {
		p.RaftAddr, p.HTTPAddr, p.Expect, p.Intent = a.RaftAddr, a.HTTPAddr, a.Expect, a.Intent
	}
	return p
}

func (b *bootstrapper) form(servers []raft.Server) {
	err := b.raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return // a leader has already sent this node its configuration
	}
	if err != nil {
		b.log.Error("cannot form the cluster", "error", err)
		return
	}
	b.log.Info("formed a cluster", "name", b.cluster, "servers", len(servers))
	b.changes.notifyAll()
	b.elections.electSoleVoter()
}
