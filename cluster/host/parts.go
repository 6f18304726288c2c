package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/gossip"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
)

const (
	storeFile     = "raft.db"
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

// OpenParts opens the data folder of a node and its raft port, and prepares its gossip. It refuses, with the way out, a
// folder that another server uses or that belongs to another node or cluster, and a store or snapshot that is damaged
// and cannot be repaired from this disk. The parts are closed by the node that is opened with them.
func OpenParts(c cluster.Config, s Security) (cluster.Parts, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return cluster.Parts{}, fmt.Errorf("configuration of node %s: %w", c.ID, err)
	}
	if c.DataDir == "" {
		return cluster.Parts{}, errors.New("DataDir is empty: a node on a machine needs a data folder of its own")
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return cluster.Parts{}, fmt.Errorf("make the data folder: %w", err)
	}
	me := identity{ID: c.ID, Cluster: c.ClusterName}
	if err := me.claim(c.DataDir); err != nil {
		return cluster.Parts{}, err
	}
	store, err := boltstore.Open(filepath.Join(c.DataDir, storeFile), 0)
	if err != nil {
		return cluster.Parts{}, err
	}
	// Again now that the store is ours: two servers may have claimed a new folder at the same moment.
	err = me.claim(c.DataDir)
	var parts cluster.Parts
	if err == nil {
		parts, err = assemble(c, store, s)
	}
	if err != nil {
		return cluster.Parts{}, errors.Join(err, store.Close())
	}
	return parts, nil
}

func assemble(c cluster.Config, store *boltstore.Store, s Security) (cluster.Parts, error) {
	snapshots, err := openSnapshots(c, store)
	if err != nil {
		return cluster.Parts{}, err
	}
	transport, err := openTransport(c, s)
	if err != nil {
		return cluster.Parts{}, err
	}
	return cluster.Parts{
		Logs: store, Stable: store, Snapshots: snapshots,
		Transport: transport,
		Discovery: gossip.New(gossip.Config{
			ID: c.ID, Cluster: c.ClusterName, Bind: c.GossipAddr, Advertise: c.GossipAdvertise, Join: c.Join, Logger: c.Logger, Keys: s.Keys,
		}),
		Close: store.Close,
		Space: space(c.DataDir),
	}, nil
}

// openSnapshots verifies what is there before raft can start from it: raft itself would skip a damaged snapshot.
func openSnapshots(c cluster.Config, store *boltstore.Store) (raft.SnapshotStore, error) {
	swept, err := raftguard.SweepSnapshots(c.DataDir)
	if err != nil {
		return nil, err
	}
	log := c.Logger.Named("host")
	if len(swept) > 0 {
		log.Info("removed unfinished snapshots", "names", swept)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(c.DataDir, snapshotsKept, c.Logger.Named("snapshots"))
	if err != nil {
		return nil, fmt.Errorf("open the snapshots in %s: %w", c.DataDir, err)
	}
	checked := raftguard.NewChecksum(store)
	if err := raftguard.VerifySnapshots(c.DataDir, snapshots, checked, fsm.CheckSnapshot, log); err != nil {
		return nil, err
	}
	return snapshots, nil
}
