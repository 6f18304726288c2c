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
	// raftPool is the number of connections to a peer that stay open.
	raftPool = 3
	// raftTimeout bounds one message to a peer; for a snapshot it applies to every 256 KiB.
	raftTimeout = 10 * time.Second
)

// Security configures encryption between nodes. The zero value sends and accepts plain text.
type Security struct {
	// Accept is the TLS configuration of the raft port. It must verify that the other side is a node of the cluster.
	Accept *tls.Config
	// Dial returns the TLS configuration for a connection to the node with that id. It must verify that the other side is
	// that node.
	Dial func(id string) *tls.Config
	// Identify returns the node at the other side of an open connection, or an error if it would not be accepted now; the
	// connection is then closed.
	Identify func(tls.ConnectionState) (id string, err error)
	// Version changes whenever Accept and Dial start to present or trust other certificates: older raft connections are
	// then closed, and raft dials again. Nil if this never happens.
	Version func() uint64
	// Keys are the gossip keys.
	Keys *gossip.Keyring
}

func (s Security) validate() error {
	if tls := s.Accept != nil; tls != (s.Dial != nil) || tls != (s.Identify != nil) {
		return errors.New("Accept, Dial and Identify belong together: set all of them, or none")
	}
	return nil
}

// Open starts a node on this machine that uses plain text.
func Open(ctx context.Context, c cluster.Config) (*cluster.Node, error) {
	node, _, err := OpenSecured(ctx, c, Security{})
	return node, err
}

// OpenSecured starts a node on this machine: cluster.Open with the parts of OpenParts. From then on raft accepts
// messages only from nodes that the node authorizes.
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

// OpenParts opens the data folder of a node, see OpenStores, and its raft port, and prepares its gossip. The node that
// is opened with the parts closes them.
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
		ID: c.ID, Cluster: c.ClusterName, Bind: c.GossipAddr, Advertise: c.GossipAdvertise, Join: c.Join,
		Logger: c.Logger,
		Keys:   s.Keys,
	})
	return parts, &Network{layer}, nil
}

// OpenStores opens the data folder of a node, or creates it. It returns an error that says what to do if another server
// uses the folder, if the folder belongs to another node or cluster, or if a store or snapshot is damaged and cannot be
// repaired from this disk. If the folder has lost a part of its content, the remains are set aside, the stores are
// empty, and Parts.Lost says what was lost.
func OpenStores(c cluster.Config) (cluster.Parts, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return cluster.Parts{}, fmt.Errorf("configuration of node %s: %w", c.ID, err)
	}
	if c.DataDir == "" {
		return cluster.Parts{}, errors.New("DataDir is empty: a node on a machine needs a data folder of its own")
	}
	folder, err := openFolder(c.DataDir, identity{ID: c.ID, Cluster: c.ClusterName}, c.LogStore,
		c.Logger.Named("host"))
	if err != nil {
		return cluster.Parts{}, err
	}
	return cluster.Parts{
		Logs: folder.logs, LogStore: folder.logs.kind, Stable: folder.store, Snapshots: folder.snapshots,
		Lost: folder.self.Lost, Stopped: folder.beginEpoch, Close: folder.close, FreeSpace: freeSpace(c.DataDir),
	}, nil
}
