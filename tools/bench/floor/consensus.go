package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	"go.etcd.io/bbolt"
)

// The log stores.
const (
	storeWAL  = "wal"
	storeBolt = "bolt"
)

const (
	// logCacheEntries is the number of entries kept in memory, so that followers are not fed from the disk.
	logCacheEntries  = 512
	maxAppendEntries = 512
	// snapshotEntries and snapshotInterval are those of a quorate server.
	snapshotEntries   = 16384
	snapshotInterval  = time.Minute
	retainedSnapshots = 2
	connectionPool    = 3
	networkTimeout    = 10 * time.Second
)

type consensus struct {
	raft    *raft.Raft
	closers []io.Closer
}

// startConsensus starts raft with the members as voters. The settings are those that gave the best throughput for small
// entries on three nodes.
func startConsensus(o options, machine raft.FSM) (*consensus, error) {
	logger := hclog.New(&hclog.LoggerOptions{Name: o.id, Level: hclog.Warn})
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(o.id)
	config.Logger = logger
	config.MaxAppendEntries = maxAppendEntries
	config.BatchApplyCh = true
	config.SnapshotThreshold, config.TrailingLogs = snapshotEntries, snapshotEntries
	config.SnapshotInterval = snapshotInterval
	config.NoLegacyTelemetry = true

	c := &consensus{}
	logs, stable, err := c.openStores(o)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(o.folder, retainedSnapshots, logger)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	transport, err := raft.NewTCPTransportWithLogger(o.raftAddress, nil, connectionPool, networkTimeout, logger)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.closers = append(c.closers, transport)
	bootstrap := raft.Configuration{}
	for id, address := range o.members {
		bootstrap.Servers = append(bootstrap.Servers,
			raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(address)})
	}
	err = raft.BootstrapCluster(config, logs, stable, snapshots, transport, bootstrap)
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) { // it has been bootstrapped before
		return nil, errors.Join(err, c.close())
	}
	if c.raft, err = raft.NewRaft(config, machine, logs, stable, snapshots, transport); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// openStores uses bbolt for votes, which are rare.
func (c *consensus) openStores(o options) (raft.LogStore, raft.StableStore, error) {
	folder := filepath.Join(o.folder, "wal")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the data folder: %w", err)
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(o.folder, "raft.db"),
		// Every transaction is synced. The list of free pages is rebuilt at the start instead of written each time.
		BoltOptions:             &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
		MsgpackUseNewTimeFormat: true,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("open the bolt store: %w", err)
	}
	c.closers = append(c.closers, bolt)
	var logs raft.LogStore = bolt
	switch o.store {
	case storeBolt:
	case storeWAL:
		w, err := wal.Open(folder)
		if err != nil {
			return nil, nil, fmt.Errorf("open the write-ahead log: %w", err)
		}
		c.closers = append(c.closers, w)
		logs = w
	default:
		return nil, nil, fmt.Errorf("store is %q; allowed are %s and %s", o.store, storeWAL, storeBolt)
	}
	cached, err := raft.NewLogCache(logCacheEntries, logs)
	return cached, bolt, err
}

// close closes the files in reverse order.
func (c *consensus) close() error {
	var failed []error
	if c.raft != nil {
		failed = append(failed, c.raft.Shutdown().Error())
	}
	for _, closer := range slices.Backward(c.closers) {
		failed = append(failed, closer.Close())
	}
	return errors.Join(failed...)
}
