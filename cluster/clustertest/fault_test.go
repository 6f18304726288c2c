package clustertest_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/cluster/simnet"
	"github.com/quorate/quorate/fsm"
)

type failingLog struct {
	raft.LogStore
	full atomic.Bool
}

var errDiskFull = errors.New("no space left on device")

func (l *failingLog) StoreLogs(entries []*raft.Log) error {
	if l.full.Load() {
		return errDiskFull
	}
	return l.LogStore.StoreLogs(entries)
}

func TestANodeWhoseDiskFailsStopsAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := map[string]*failingLog{}
		disks := func(id string) cluster.Parts {
			disk := simnet.NewDisk(1)
			logs[id] = &failingLog{LogStore: disk}
			return cluster.Parts{Logs: logs[id], Stable: disk, Snapshots: disk.Snapshots}
		}
		c := clustertest.Start(t, 3, clustertest.WithParts(disks))
		c.CreateTree()
		load := c.StartLoad(4)
		time.Sleep(time.Second)
		broken := c.Leader()
		logs[broken.Status().ID].full.Store(true)
		select {
		case <-broken.Done():
		case <-time.After(time.Minute):
			t.Fatal("the node goes on without a disk")
		}
		if !errors.Is(broken.Err(), errDiskFull) {
			t.Errorf("the node stopped because of %v, want the disk's error", broken.Err())
		}
		if _, err := clustertest.Propose(broken,
			clustertest.NewAllocate("b", 1)); cluster.ReasonOf(err) != cluster.Halted {
			t.Errorf("a write on the broken node: %v, want HALTED", err)
		}
		if _, _, err := clustertest.ReadUsed(broken,
			cluster.ReadOptions{Stale: true}); cluster.ReasonOf(err) != cluster.Halted {
			t.Errorf("a stale read on the broken node: %v, want HALTED", err)
		}
		if s := broken.Status(); s.Problem == "" {
			t.Error("the broken node has no problem to report")
		}
		c.Stop(broken.Status().ID)
		c.Leader()
		time.Sleep(2 * time.Second)
		if acknowledged, _ := load.Stop(); acknowledged < 100 {
			t.Errorf("only %d writes were acknowledged", acknowledged)
		}
		load.Check()
	})
}

func TestANodeThatMeetsAnEntryOfTheFutureStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		c.CreateTree()
		c.MustPropose(clustertest.NewAllocate("a", 1))
		c.Stop("n1")
		disk := c.Disk("n1")
		last, err := disk.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		unknown := raft.Log{Index: last + 1, Term: 2, Type: raft.LogCommand, Data: []byte{0x08, 99}} // format 99
		if err := raftguard.NewChecksum(disk).StoreLog(&unknown); err != nil {
			t.Fatal(err)
		}
		n := c.StartNode("n1")
		select {
		case <-n.Done():
		case <-time.After(time.Minute):
			t.Fatal("the node skipped an entry that it does not understand")
		}
		if !errors.Is(n.Err(), fsm.ErrHalted) {
			t.Errorf("the node stopped because of %v", n.Err())
		}
		if err := n.Ready(); cluster.ReasonOf(err) != cluster.Halted {
			t.Errorf("ready: %v, want HALTED", err)
		}
		if _, err := n.WaitLeader(t.Context()); cluster.ReasonOf(err) != cluster.Halted {
			t.Errorf("a wait for a leader: %v, want HALTED", err)
		}
	})
}

func TestAStoppedNodeAnswersSoAndStopsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		n := c.Node("n1")
		c.Stop("n1")
		<-n.Done()
		if n.Err() != nil {
			t.Errorf("an ordinary stop left the fault %v", n.Err())
		}
		if err := n.Shutdown(t.Context()); err != nil {
			t.Errorf("the second stop: %v", err)
		}
		if _, err := clustertest.Propose(n, clustertest.NewAllocate("a", 1)); cluster.ReasonOf(
			err) != cluster.ShuttingDown {
			t.Errorf("a write: %v, want SHUTTING_DOWN", err)
		}
		if _, _, err := clustertest.ReadUsed(n, cluster.ReadOptions{}); cluster.ReasonOf(err) != cluster.ShuttingDown {
			t.Errorf("a read: %v, want SHUTTING_DOWN", err)
		}
	})
}

func TestADamagedLogIsRefusedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		c.CreateTree()
		c.Stop("n1")
		disk := c.Disk("n1")
		last, err := disk.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		if err := disk.DeleteRange(last-1, last-1); err != nil {
			t.Fatal(err)
		}
		net := simnet.New(1)
		defer net.Close()
		_, err = cluster.Open(
			t.Context(), cluster.Config{ID: "n1", RaftAddr: "n1:1", HTTPAdvertise: "n1:2"}, cluster.Parts{
				Logs: disk, Stable: disk, Snapshots: disk.Snapshots, Transport: net.Transport("n1:1"),
				Discovery: clustertest.NoPeers(),
			})
		var hole *raftguard.HoleError
		if !errors.As(err, &hole) {
			t.Errorf("a log with a hole: %v, want a *HoleError", err)
		}
	})
}
