package peers

import (
	"cmp"
	"slices"
	"sync"
)

// Directory keeps what gossip last reported about peers, including peers that are gone. It is used to find the
// addresses to query and for display; no decision is based on it (docs/adr/0053).
type Directory struct {
	discovery Discovery

	announceLock sync.Mutex // serializes announcements, so that the last one is current

	mu    sync.Mutex
	self  Peer
	peers map[string]Peer
}

// NewDirectory returns the directory of a node that announces self.
func NewDirectory(discovery Discovery, self Peer) *Directory {
	return &Directory{discovery: discovery, self: self, peers: map[string]Peer{}}
}

// Refresh takes the current peers from gossip.
func (d *Directory) Refresh() {
	heard := d.discovery.Peers()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, p := range d.peers {
		p.Alive = false
		d.peers[id] = p
	}
	for _, p := range heard {
		if p.ID != d.self.ID {
			d.peers[p.ID] = p
		}
	}
}

// Alive returns the peers that are alive according to gossip, sorted by id.
func (d *Directory) Alive() []Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	var alive []Peer
	for _, p := range d.peers {
		if p.Alive {
			alive = append(alive, p)
		}
	}
	slices.SortFunc(alive, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return alive
}

// Find returns a known peer, or this node.
func (d *Directory) Find(id string) (Peer, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id == d.self.ID {
		return d.self, true
	}
	p, found := d.peers[id]
	return p, found
}

// Own is what this node announces about itself.
func (d *Directory) Own() Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.self
}

// Announce changes what this node announces about itself.
func (d *Directory) Announce(change func(*Peer)) error {
	d.announceLock.Lock()
	defer d.announceLock.Unlock()
	d.mu.Lock()
	change(&d.self)
	self := d.self
	d.mu.Unlock()
	return d.discovery.Update(self)
}

// Count counts the peers that are alive according to gossip, and those that are not.
func (d *Directory) Count() (alive, lost int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.peers {
		if p.Alive {
			alive++
		} else {
			lost++
		}
	}
	return alive, lost
}
