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

// runBootstrap runs on a node that started without state until the node has state, because it formed a cluster or
// because a leader sent it entries.
func (n *Node) runBootstrap() {
	var reminded time.Time
	var v bootstrapDecision
	for n.raft.LastIndex() == 0 {
		changed := n.changes.nextChange()
		// Once a cluster is known to exist, this process never forms another one, even if no member of it is reachable any
		// more.
		if !v.clusterExists {
			v = n.bootstrapStep()
		}
		wait := v.waitReason
		n.bootstrapWait.Store(&wait)
		if v.waitReason != "" && time.Since(reminded) >= reminderInterval {
			n.log.Info("no cluster yet", "waiting", v.waitReason)
			reminded = time.Now()
		}
		if !waitForChange(n.ctx, changed, bootstrapInterval) {
			return
		}
	}
	n.bootstrapWait.Store(nil)
	if err := n.directory.announceSelf(func(p *Peer) { p.HasState = true }); err != nil {
		n.log.Warn("cannot announce that this node has joined", "error", err)
	}
}

// bootstrapStep takes one step towards a cluster.
func (n *Node) bootstrapStep() bootstrapDecision {
	if n.joiner.lost != "" { // this node's cluster exists, or existed
		return bootstrapDecision{clusterExists: true, waitReason: n.joiner.waitMessage(n.config.ID)}
	}
	self := n.directory.ownPeer()
	if self.Expect == 0 {
		return bootstrapDecision{waitReason: "this node was told to wait until a leader adds it (BootstrapExpect is 0)"}
	}
	candidates, unasked, silent := n.bootstrapCandidates()
	if unasked != "" && time.Since(n.started) < bootstrapProbeWait {
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
		n.openForBootstrap()
		if err := n.directory.announceSelf(func(p *Peer) { p.Intent = v.intent }); err != nil {
			n.log.Warn("cannot announce the nodes of the new cluster", "error", err)
		}
		n.changes.notifyAll()
		return bootstrapDecision{}
	}
	if len(v.servers) > 0 {
		n.formCluster(v.servers)
		return bootstrapDecision{}
	}
	return v
}

// bootstrapCandidates returns the nodes known from gossip as they described themselves when they were last queried,
// because gossip messages can be forged. Nodes that do not answer are left out; unasked names one that was not queried
// yet, and silent is the error of one that did not answer.
func (n *Node) bootstrapCandidates() (list []Peer, unasked, silent string) {
	for _, p := range n.directory.alivePeers() {
		switch a := n.answers.findAnswer(p.ID); {
		case a.askedAt.IsZero():
			unasked = p.ID
		case a.isCurrent():
			list = append(list, a.toPeer(p))
		default:
			silent = a.problem
		}
	}
	return list, unasked, silent
}

// toPeer converts the node's own report about itself. Versions below feature level 5 omit fields that they announce by
// gossip; these are taken from gossiped.
func (a peerAnswer) toPeer(gossiped Peer) Peer {
	p := gossiped
	p.HasState = a.LastIndex > 0
	if a.RaftAddr != "" {
		p.RaftAddr, p.HTTPAddr, p.Expect, p.Intent = a.RaftAddr, a.HTTPAddr, a.Expect, a.Intent
	}
	return p
}

func (n *Node) formCluster(servers []raft.Server) {
	err := n.raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return // a leader has already sent this node its configuration
	}
	if err != nil {
		n.log.Error("cannot form the cluster", "error", err)
		return
	}
	n.log.Info("formed a cluster", "name", n.config.ClusterName, "servers", len(servers))
	n.changes.notifyAll()
	n.electSoleVoter()
}
