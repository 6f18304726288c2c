package gossip

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate implements memberlist's callbacks. memberlist holds its lock during most of them, so none calls memberlist.
type delegate struct{ g *Gossip }

// NodeMeta returns what this node announces about itself.
func (d delegate) NodeMeta(int) []byte {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	return d.g.ownMeta
}

// NotifyMsg ignores messages: none are used.
func (d delegate) NotifyMsg([]byte) {}

// GetBroadcasts returns nothing: no messages are used.
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing: no user state is exchanged.
func (d delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores user state: none is exchanged.
func (d delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive refuses nodes of other clusters, and unknown names beyond maxNames.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	if _, err := decodeMeta(d.g.config.Cluster, n.Name, n.Meta); err != nil {
		return err
	}
	return d.g.admitName(n.Name)
}

// NotifyMerge refuses to join a gossip network that contains nodes of another cluster.
func (d delegate) NotifyMerge(nodes []*memberlist.Node) error {
	for _, n := range nodes {
		if n.State != memberlist.StateAlive {
			continue
		}
		if _, err := decodeMeta(d.g.config.Cluster, n.Name, n.Meta); err != nil {
			return fmt.Errorf("refused to join: %w", err)
		}
	}
	return nil
}

// NotifyConflict logs that two processes use the same id.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.log.Error("two nodes use the same id; stop one of them and start it with its own id",
		"id", existing.Name, "one", existing.Address(), "other", other.Address())
}

// NotifyJoin records a peer that has joined.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.recordPeer(n, true) }

// NotifyUpdate records a peer that has changed its metadata.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.recordPeer(n, true) }

// NotifyLeave records a peer that has left or failed.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.recordPeer(n, false) }

const (
	// maxNames bounds the nodes known at once, including those that left recently. It is many times the size of a cluster.
	maxNames = 64
	// nameMemory is how long a name is remembered after it was last reported alive: longer than memberlist does.
	nameMemory = 2 * time.Minute
)

// admitName returns an error if too many names are known. Without that bound an attacker could make up nodes until
// memory is exhausted and memberlist no longer probes the real nodes.
func (g *Gossip) admitName(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.names[name]; !known && len(g.names) >= maxNames && !slices.Contains(g.keptNames, name) &&
		name != g.config.ID {
		maps.DeleteFunc(g.names, func(name string, last time.Time) bool {
			return !g.peers[name].Alive && time.Since(last) > nameMemory
		})
		if len(g.names) >= maxNames {
			return fmt.Errorf("%d nodes are known already, which is the maximum", maxNames)
		}
	}
	g.names[name] = time.Now()
	return nil
}

// evictDeadPeer forgets a dead peer if there are too many to add name. It must be called with mu held.
func (g *Gossip) evictDeadPeer(name string) {
	if _, known := g.peers[name]; known || len(g.peers) < maxNames {
		return
	}
	for id, p := range g.peers {
		if !p.Alive && !slices.Contains(g.keptNames, id) {
			delete(g.peers, id)
			return
		}
	}
}

func (d delegate) recordPeer(n *memberlist.Node, alive bool) {
	if n.Name == d.g.config.ID {
		// Read the address only here: memberlist changes its own record of this node without a lock that readers could take.
		d.g.mu.Lock()
		d.g.ownAddress = n.Address()
		d.g.mu.Unlock()
		return
	}
	p, err := decodeMeta(d.g.config.Cluster, n.Name, n.Meta)
	if err != nil {
		d.g.log.Warn("ignored a peer", "error", err)
		return
	}
	p.Alive = alive
	d.g.mu.Lock()
	d.g.evictDeadPeer(n.Name)
	d.g.peers[n.Name] = gossipPeer{Peer: p, address: n.Address()}
	d.g.mu.Unlock()
	select {
	case d.g.changed <- struct{}{}:
	default:
	}
}
