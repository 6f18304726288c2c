package gossip

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls. Most calls come with memberlist's lock held, so none calls back into it.
type delegate struct{ g *Gossip }

// NodeMeta is what this node says of itself.
func (d delegate) NodeMeta(int) []byte {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	return d.g.ownMeta
}

// NotifyMsg ignores messages: there are none.
func (d delegate) NotifyMsg([]byte) {}

// GetBroadcasts has no messages.
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has nothing to add.
func (d delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState expects nothing.
func (d delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive refuses nodes of other clusters, and names that nobody expects beyond maxNames.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	if _, err := decodeMeta(d.g.config.Cluster, n.Name, n.Meta); err != nil {
		return err
	}
	return d.g.admitName(n.Name)
}

// NotifyMerge refuses to join a network in which another cluster gossips.
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

// NotifyConflict says that two processes use one id.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.log.Error("two nodes use the same id; stop one of them and start it with its own id",
		"id", existing.Name, "one", existing.Address(), "other", other.Address())
}

// NotifyJoin notes a peer that has come.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.recordPeer(n, true) }

// NotifyUpdate notes a peer that says something new.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.recordPeer(n, true) }

// NotifyLeave notes a peer that has gone, on purpose or not.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.recordPeer(n, false) }

const (
	// maxNames is how many nodes are known at once, those that have gone a moment ago too: many times as many as a cluster has.
	maxNames = 64
	// nameMemory is how long a name is remembered after it was last said to be alive: longer than memberlist does.
	nameMemory = 2 * time.Minute
)

// admitName is an error if there are too many names to take in one more. Without that bound anyone could make up nodes until the
// memory is full, and until those that exist are not looked after any more.
func (g *Gossip) admitName(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.names[name]; !known && len(g.names) >= maxNames && !slices.Contains(g.keptNames, name) && name != g.config.ID {
		maps.DeleteFunc(g.names, func(name string, last time.Time) bool {
			return !g.peers[name].Alive && time.Since(last) > nameMemory
		})
		if len(g.names) >= maxNames {
			return fmt.Errorf("%d nodes are known already, as many as may be", maxNames)
		}
	}
	g.names[name] = time.Now()
	return nil
}

// evictDeadPeer forgets a node that has gone, if there are too many to take in one more. It must be called with mu held.
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
		// Only here: memberlist changes its own record of this node while others read it.
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
