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
	// Accept and Dial are for the connections of raft. Both must verify that the other side is a node of the cluster.
	Accept, Dial *tls.Config
	// Version rises whenever Accept and Dial would show or trust other certificates than before: connections of raft that
	// are older are closed then, and raft dials anew. Nil if that never happens.
	Version func() uint64
	// Verify is an error if the other side of an open connection would not be believed now. Connections for which it is
	// are closed. Nil if it is never asked again.
	Verify func(tls.ConnectionState) error
	// Keys are those of gossip.
	Keys *gossip.Keyring
}

// Open starts a node on this machine that speaks plain text: cluster.Open with the parts of OpenParts.
func Open(ctx context.Context, c cluster.Config) (*cluster.Node, error) {
	return OpenSecured(ctx, c, Security{})
}

// OpenSecured starts a node on this machine: cluster.Open with the parts of OpenParts.
func OpenSecured(ctx context.Context, c cluster.Config, s Security) (*cluster.Node, error) {
	parts, err := OpenParts(c, s)
	if err != nil {
		return nil, err
	}
	return cluster.Open(ctx, c, parts)
}

// OpenParts opens the data folder of a node, see OpenStores, and its raft port, and prepares its gossip. The parts are closed
// by the node that is opened with them.
func OpenParts(c cluster.Config, s Security) (cluster.Parts, error) {
	parts, err := OpenStores(c)
	if err != nil {
		return cluster.Parts{}, err
	}
	c = c.WithDefaults()
	if parts.Transport, err = openTransport(c, s); err != nil {
		return cluster.Parts{}, errors.Join(err, parts.Close())
	}
	parts.Discovery = gossip.New(gossip.Config{
		ID: c.ID, Cluster: c.ClusterName, Bind: c.GossipAddr, Advertise: c.GossipAdvertise, Join: c.Join, Logger: c.Logger, Keys: s.Keys,
	})
	return parts, nil
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
		Logs: folder.store, Stable: folder.store, Snapshots: folder.snapshots, Lost: folder.me.Lost,
		Close: folder.close, Space: space(c.DataDir),
	}, nil
}
