package gossip

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

const (
	// aloneRetry is how often a node without live peers tries to join.
	aloneRetry = time.Second
	// missingRetry is how often a node with live peers looks for missing ones: after a partition memberlist forgets the
	// other side, and without retries the two sides would stay separate.
	missingRetry = 15 * time.Second
)

// keepJoined dials the addresses of the join list, and of all peers ever seen, until a live peer is known at each of
// them.
func (g *Gossip) keepJoined() {
	for {
		missing := g.missingAddresses()
		found := g.joinAddresses(missing)
		if found > 0 {
			g.log.Debug("joined", "addresses", found)
		}
		pause := missingRetry
		if len(missing) > 0 && g.isAlone() {
			pause = aloneRetry
		}
		// Jitter keeps nodes that started together from dialing at the same time.
		timer := time.NewTimer(pause + rand.N(pause/4))
		select {
		case <-timer.C:
		case <-g.ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (g *Gossip) joinAddresses(addresses []string) (found int) {
	for _, address := range addresses {
		if g.ctx.Err() != nil {
			return found
		}
		n, err := g.list.Join([]string{address})
		if err != nil {
			g.log.Debug("cannot join a peer", "address", address, "error", err)
		}
		found += n
	}
	return found
}

// Join dials an address and reports whether no live peer was known there. Peers found this way are dialed again
// whenever they are missing.
func (g *Gossip) Join(_ context.Context, address string) (bool, error) {
	list := g.activeList()
	if list == nil {
		return false, errors.New("gossip does not run")
	}
	bind, port, err := resolveAddress(address)
	if err != nil {
		return false, err
	}
	before := g.isAliveAt(net.JoinHostPort(bind, strconv.Itoa(port)))
	if _, err := list.Join([]string{address}); err != nil {
		return false, err
	}
	return !before, nil
}

// isAliveAt is true for this node too.
func (g *Gossip) isAliveAt(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if address == g.ownAddress {
		return true
	}
	for _, p := range g.peers {
		if p.Alive && p.address == address {
			return true
		}
	}
	return false
}

func (g *Gossip) isAlone() bool {
	for _, p := range g.Peers() {
		if p.Alive {
			return false
		}
	}
	return true
}

func (g *Gossip) missingAddresses() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	here := map[string]bool{g.ownAddress: true, g.config.Advertise: true, g.config.Bind: true}
	var wanted []string
	for _, p := range g.peers {
		if p.Alive {
			here[p.address] = true
			continue
		}
		wanted = append(wanted, p.address)
	}
	wanted = append(wanted, g.config.Join...)
	var missing []string
	for _, address := range wanted {
		if !here[address] {
			missing = append(missing, address)
			here[address] = true
		}
	}
	return missing
}
