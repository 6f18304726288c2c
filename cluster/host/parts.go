package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/gossip"
)

const (
	snapshotsKept = 3
	// raftPool is how many connections to a peer stay open.
	raftPool = 3
	// raftTimeout bounds one message to a peer; a snapshot gets it for every 256 KiB.
	raftTimeout = 10 * time.Second
)

// Security encrypts what goes between the nodes. The zero value sends plain text, and takes it.
type Security struct {
	// Accept is for the port of raft. It must verify that the other side is a node of the cluster.
	Accept *tls.Config
	// Dial is for a connection to the node of that id. It must verify that the other side is that node.
	Dial func(id string) *tls.Config
	// Identify tells which node is the other side of an open connection; it is an error if that would not be believed now.
	// Connections for which it is are closed.
	Identify func(tls.ConnectionState) (id string, err error)
	// Version rises whenever Accept and Dial would show or trust other certificates than before: connections of raft that
	// are older are closed then, and raft dials anew. Nil if that never happens.
	Version func() uint64
	// Keys are those of gossip.
	Keys *gossip.Keyring
}

func (s Security) validate() error {
	if tls := s.Accept != nil; tls != (s.Dial != nil) || tls != (s.Identify != nil) {
		return errors.New("Accept, Dial and Identify belong together: set all of them, or none")
	}
	return nil
}

// Open starts a node on this machine that speaks plain text.
func Open(ctx context.Context, c cluster.Config) (*cluster.Node, error) {
	node, _, err := OpenSecured(ctx, c, Security{})
	return node, err
}

// OpenSecured starts a node on this machine: cluster.Open with the parts of OpenParts. From then on raft takes messages from
// those nodes only that the node admits.
func OpenSecured(ctx context.Context, c cluster.Config, s Security) (*cluster.Node, *Network, error) {
	parts, network, err := OpenParts(c, s)
	if err != nil {
		return nil, nil, err
	}
	node, err := cluster.Open(ctx, c, parts)
	if err != nil {
		return nil, nil, err
	}
	network.stream.open.setAuthorizer(node.AuthorizePeer)
	return node, network, nil
}

// OpenParts opens the data folder of a node, see OpenStores, and its raft port, and prepares its gossip. The parts are closed
// by the node that is opened with them.
func OpenParts(c cluster.Config, s Security) (cluster.Parts, *Network, error) {
	if err := s.validate(); err != nil {
		return cluster.Parts{}, nil, fmt.Errorf("configuration of node %s: %w", c.ID, err)
	}
	parts, err := OpenStores(c)
	if err != nil {
		return cluster.Parts{}, nil, err
	}
	c = c.WithDefaults()
	transport, layer, err := openTransport(c, s)
	if err != nil {
		return cluster.Parts{}, nil, errors.Join(err, parts.Close())
	}
	parts.Transport = transport
	closeStores := parts.Close
	parts.Close = func() error { return errors.Join(layer.closePort(), closeStores()) }
	parts.Discovery = gossip.New(gossip.Config{
		ID: c.ID, Cluster: c.ClusterName, Bind: c.GossipAddr, Advertise: c.GossipAdvertise, Join: c.Join, Logger: c.Logger, Keys: s.Keys,
	})
	return parts, &Network{layer}, nil
}

// OpenStores opens the data folder of a node, or makes a new one. It refuses, with the way out, a folder that another server
// uses or that belongs to another node or cluster, and a store or snapshot that is damaged and cannot be repaired from this
// disk. From a folder that has lost a part of what it held it makes an empty one, sets aside what is left, and says so in
// Parts.Lost.
func OpenStores(c cluster.Config) (cluster.Parts, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return cluster.Parts{}, fmt.Errorf("configuration of node %s: %w", c.ID, err)
	}
	if c.DataDir == "" {
		return cluster.Parts{}, errors.New("DataDir is empty: a node on a machine needs a data folder of its own")
	}
	folder, err := openFolder(c.DataDir, identity{ID: c.ID, Cluster: c.ClusterName}, c.Logger.Named("host"))
	if err != nil {
		return cluster.Parts{}, err
	}
	return cluster.Parts{
		Logs: folder.store, Stable: folder.store, Snapshots: folder.snapshots, Lost: folder.owner.Lost,
		Close: folder.close, FreeSpace: freeSpace(c.DataDir),
	}, nil
}
