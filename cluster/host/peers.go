package host

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
)

// Peer is a server of raft's configuration.
type Peer struct {
	ID      string `json:"id" yaml:"id"`
	Address string `json:"address" yaml:"address"`
	// Voter is true if unset.
	Voter *bool `json:"voter,omitempty" yaml:"voter,omitempty"`
}

// IsVoter reports whether the peer is a voter.
func (p Peer) IsVoter() bool { return p.Voter == nil || *p.Voter }

// CheckPeers returns all errors in a list of peers. Each error names the field and what is allowed.
func CheckPeers(peers []Peer) error {
	var faults []error
	ids, addresses := map[string]int{}, map[string]int{}
	voters := 0
	for i, p := range peers {
		faults = append(faults, cluster.CheckName(fmt.Sprintf("peers[%d].id", i), p.ID))
		faults = append(faults, cluster.CheckAdvertisedAddr(fmt.Sprintf("peers[%d].address", i), p.Address))
		if first, again := ids[p.ID]; again {
			faults = append(
				faults, fmt.Errorf("peers[%d].id is %q, as is peers[%d].id: allowed is each node once", i, p.ID,
					first))
		}
		if first, again := addresses[p.Address]; again {
			faults = append(
				faults, fmt.Errorf("peers[%d].address is %q, as is peers[%d].address: allowed is an address of its "+
					"own for each", i, p.Address, first))
		}
		ids[p.ID], addresses[p.Address] = i, i
		if p.IsVoter() {
			voters++
		}
	}
	switch {
	case len(peers) == 0:
		faults = append(faults, errors.New(
			"peers is empty: allowed are 1 or more nodes, each with id, address and perhaps "+
				"voter"))
	case voters == 0:
		faults = append(faults, errors.New("no peer has voter true: at least one must, or no node could lead"))
	}
	return errors.Join(faults...)
}

// checkOwnPeer requires the node of the folder to be one of the voters, because no other node has the state.
func checkOwnPeer(peers []Peer, id string) error {
	if err := CheckPeers(peers); err != nil {
		return err
	}
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.ID == id })
	switch {
	case i < 0:
		return fmt.Errorf("peers has no id %q: the data folder belongs to that node, so it must be one of them", id)
	case !peers[i].IsVoter():
		return fmt.Errorf(
			"peers[%d].voter is false: node %q, whose data folder this is, must be a voter, because it has "+
				"the state", i, id)
	}
	return nil
}

func toConfiguration(peers []Peer) raft.Configuration {
	var c raft.Configuration
	for _, p := range peers {
		server := raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address), Suffrage: raft.Nonvoter}
		if p.IsVoter() {
			server.Suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, server)
	}
	return c
}

func fromConfiguration(c raft.Configuration) []Peer {
	var peers []Peer
	for _, s := range c.Servers {
		voter := s.Suffrage == raft.Voter
		peers = append(peers, Peer{ID: string(s.ID), Address: string(s.Address), Voter: &voter})
	}
	return peers
}
