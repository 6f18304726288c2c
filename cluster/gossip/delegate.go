package gossip

import (
	"fmt"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls. Most calls come with memberlist's lock held, so none calls back into it.
type delegate struct{ g *Gossip }

// NodeMeta is what this node says of itself.
func (d delegate) NodeMeta(int) []byte {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	return d.g.own
}

// NotifyMsg ignores messages: there are none.
func (d delegate) NotifyMsg([]byte) {}

// GetBroadcasts has no messages.
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has nothing to add.
func (d delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState expects nothing.
func (d delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive refuses nodes of other clusters.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	_, err := decode(d.g.config.Cluster, n.Name, n.Meta)
	return err
}

// NotifyMerge refuses to join a network in which another cluster gossips.
func (d delegate) NotifyMerge(nodes []*memberlist.Node) error {
	for _, n := range nodes {
		if n.State != memberlist.StateAlive {
			continue
		}
		if err := d.NotifyAlive(n); err != nil {
			return fmt.Errorf("refused to join: %w", err)
		}
	}
	return nil
}

// NotifyConflict says that two processes use one id.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.log.Error("two nodes use the same id; stop one of them and start it with its own id",
		"id", existing.Name, "one", existing.Address(), "other", other.Address())
}

// NotifyJoin notes a peer that has come.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.note(n, true) }

// NotifyUpdate notes a peer that says something new.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.note(n, true) }

// NotifyLeave notes a peer that has gone, on purpose or not.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.note(n, false) }

// mostPeers is how many peers are remembered, those that have gone too: many times as many as a cluster has members.
const mostPeers = 256

// makeRoom forgets somebody who has gone, if there are too many to take in one more. It must be called with mu held.
func (g *Gossip) makeRoom(newcomer string) {
	if _, known := g.peers[newcomer]; known || len(g.peers) < mostPeers {
		return
	}
	for id, p := range g.peers {
		if !p.Alive {
			delete(g.peers, id)
			return
		}
	}
}

func (d delegate) note(n *memberlist.Node, alive bool) {
	if n.Name == d.g.config.ID {
		// Only here: memberlist changes its own record of this node while others read it.
		d.g.mu.Lock()
		d.g.here = n.Address()
		d.g.mu.Unlock()
		return
	}
	p, err := decode(d.g.config.Cluster, n.Name, n.Meta)
	if err != nil {
		d.g.log.Warn("ignored a peer", "error", err)
		return
	}
	p.Alive = alive
	d.g.mu.Lock()
	d.g.makeRoom(n.Name)
	d.g.peers[n.Name] = neighbour{Peer: p, address: n.Address()}
	d.g.mu.Unlock()
	select {
	case d.g.changed <- struct{}{}:
	default:
	}
}
