package raftguard_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/simnet"
)

// Negative control for store errors (raft#163): stock raft logs them and continues.
//
// The schedule: a server, alone in its cluster, starts an election on a disk on which one write fails, either its own
// vote or its first entry as leader. Stock raft tries again, becomes leader, and continues writing to a disk that has
// just shown that it may lose data. With FailStopStore the node is notified once, and no further write reaches the
// disk.
var storeFailures = []struct{ name, operation string }{
	{name: "a vote cannot be stored", operation: "SetUint64 LastVoteTerm"},
	{name: "an entry cannot be stored", operation: "StoreLogs"},
}

func TestControlStockRaftCarriesOnAfterAStoreError(t *testing.T) {
	for _, failure := range storeFailures {
		t.Run(failure.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := bootstrappedStores(t)
				disk.failNext(failure.operation)
				node, stop := startAlone(t, disk, disk)
				defer stop()
				time.Sleep(time.Minute)
				writes, failed := disk.writesAfterFailure()
				if !failed || writes == 0 || node.State() != raft.Leader {
					t.Errorf(
						"failed: %v, writes since: %d, state: %v; either raft stops at store errors now, then drop the "+
							"fail-stop store, or this no longer provokes one", failed, writes, node.State())
				}
			})
		})
	}
}

func TestControlLatchStopsAfterAStoreError(t *testing.T) {
	for _, failure := range storeFailures {
		t.Run(failure.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := bootstrappedStores(t)
				disk.failNext(failure.operation)
				reported := make(chan error, 2)
				store := raftguard.NewFailStopStore(disk, disk, func(err error) { reported <- err })
				_, stop := startAlone(t, store, store)
				err := <-reported
				stop() // as the node does
				if !errors.Is(err, errDisk) || !errors.Is(store.Err(), errDisk) {
					t.Errorf("the node was told %v, the store says %v", err, store.Err())
				}
				if err := store.StoreLog(&raft.Log{Index: 99}); !errors.Is(err, errDisk) {
					t.Errorf("a later write: %v", err)
				}
				writes, failed := disk.writesAfterFailure()
				if !failed || writes != 0 || len(reported) != 0 {
					t.Errorf("failed: %v, writes since: %d, told %d times too often", failed, writes, len(reported))
				}
			})
		})
	}
}

func bootstrappedStores(t *testing.T) *faultyDisk {
	t.Helper()
	disk := &faultyDisk{InmemStore: raft.NewInmemStore()}
	servers := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}
	net := simnet.New(1)
	defer net.Close()
	err := raft.BootstrapCluster(aloneConfig(), disk, disk, simnet.NewSnapshotStore(1), net.Transport("a"), servers)
	if err != nil {
		t.Fatal(err)
	}
	return disk
}

func startAlone(t *testing.T, logs raft.LogStore, stable raft.StableStore) (*raft.Raft, func()) {
	t.Helper()
	net := simnet.New(1)
	node, err := raft.NewRaft(aloneConfig(), newHistory(), logs, stable, simnet.NewSnapshotStore(1), net.Transport("a"))
	if err != nil {
		t.Fatal(err)
	}
	return node, func() {
		if err := node.Shutdown().Error(); err != nil {
			t.Error(err)
		}
		net.Close()
	}
}

func aloneConfig() *raft.Config {
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = "a", hclog.NewNullLogger()
	return config
}
