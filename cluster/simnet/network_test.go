package simnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/simnet"
)

// valueRegister is the smallest FSM with a history: the applied commands in order.
type valueRegister struct {
	mu      sync.Mutex
	applied []byte
}

func (r *valueRegister) Apply(entry *raft.Log) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = append(append(r.applied, entry.Data...), ' ')
	return nil
}

func (r *valueRegister) allValues() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.applied)
}

func (r *valueRegister) Snapshot() (raft.FSMSnapshot, error) {
	return registerSnapshot(r.allValues()), nil
}

func (r *valueRegister) Restore(state io.ReadCloser) error {
	content, err := io.ReadAll(state)
	err = errors.Join(err, state.Close())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = content
	return err
}

type registerSnapshot string

func (i registerSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := io.WriteString(sink, string(i)); err != nil {
		return err
	}
	return sink.Close()
}

func (registerSnapshot) Release() {}

type cluster struct {
	t     *testing.T
	net   *simnet.Network
	ids   []raft.ServerID
	rafts map[raft.ServerID]*raft.Raft
	fsms  map[raft.ServerID]*valueRegister
	disks map[raft.ServerID]*simnet.Disk
}

func startCluster(t *testing.T, size int) *cluster {
	t.Helper()
	c := &cluster{
		t: t, net: simnet.New(1), rafts: map[raft.ServerID]*raft.Raft{},
		fsms: map[raft.ServerID]*valueRegister{}, disks: map[raft.ServerID]*simnet.Disk{},
	}
	var servers raft.Configuration
	for i := range size {
		id := raft.ServerID(fmt.Sprintf("n%d", i))
		c.ids = append(c.ids, id)
		c.disks[id] = simnet.NewDisk(2)
		servers.Servers = append(servers.Servers, raft.Server{ID: id, Address: raft.ServerAddress(id)})
	}
	for _, id := range c.ids {
		c.startNode(id)
	}
	if err := c.rafts[c.ids[0]].BootstrapCluster(servers).Error(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) startNode(id raft.ServerID) {
	config := raft.DefaultConfig()
	config.LocalID, config.Logger, config.TrailingLogs = id, hclog.NewNullLogger(), 4
	c.fsms[id] = &valueRegister{}
	disk := c.disks[id]
	node, err := raft.NewRaft(config, c.fsms[id], disk, disk, disk.Snapshots, c.net.Transport(id))
	if err != nil {
		c.t.Fatal(err)
	}
	c.rafts[id] = node
}

func (c *cluster) crashNode(id raft.ServerID) {
	if err := c.rafts[id].Shutdown().Error(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) stopAll() {
	for _, id := range c.ids {
		c.crashNode(id)
	}
	c.net.Close()
}

// awaitLeader takes no node in except.
func (c *cluster) awaitLeader(except ...raft.ServerID) raft.ServerID {
	for range 3000 {
		for _, id := range c.ids {
			if len(except) > 0 && id == except[0] {
				continue
			}
			if c.rafts[id].State() == raft.Leader {
				return id
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatal("no leader within 30 seconds")
	return ""
}

func (c *cluster) proposeValue(id raft.ServerID, value string) error {
	return c.rafts[id].Apply([]byte(value), time.Second).Error()
}

func (c *cluster) mustWrite(id raft.ServerID, value string) {
	c.t.Helper()
	if err := c.proposeValue(id, value); err != nil {
		c.t.Fatalf("write %s at %s: %v", value, id, err)
	}
}

// awaitConverged gives every node time to catch up, then requires the same content everywhere.
func (c *cluster) awaitConverged() string {
	c.t.Helper()
	time.Sleep(20 * time.Second)
	want := c.fsms[c.awaitLeader()].allValues()
	for _, id := range c.ids {
		if got := c.fsms[id].allValues(); got != want {
			c.t.Errorf("%s holds %q, the leader %q", id, got, want)
		}
	}
	return want
}

func TestClusterElectsCommitsAndReplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 5)
		defer c.stopAll()
		leader := c.awaitLeader()
		for i := range 100 {
			c.mustWrite(leader, fmt.Sprint(i))
		}
		if got := c.awaitConverged(); len(got) != 290 {
			t.Errorf("%d bytes applied, want 290", len(got))
		}
		if now := c.awaitLeader(); now != leader {
			t.Errorf("leader changed from %s to %s on a quiet network", leader, now)
		}
	})
}

func TestIsolatedLeaderIsReplacedAndReturnsAsFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 3)
		defer c.stopAll()
		old := c.awaitLeader()
		c.mustWrite(old, "before")
		c.net.Isolate(old)
		fresh := c.awaitLeader(old)
		c.mustWrite(fresh, "after")
		if got := c.fsms[old].allValues(); got != "before " {
			t.Errorf("the isolated node applied %q", got)
		}
		c.net.Heal()
		if got := c.awaitConverged(); got != "before after " {
			t.Errorf("applied %q", got)
		}
	})
}

func TestOneWayCutStopsOneDirectionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		defer net.Close()
		a, b := net.Transport("a"), net.Transport("b")
		got := answerVotes(b)
		net.CutOneWay("a", "b")
		if err := requestVote(a); err == nil {
			t.Error("a request crossed a cut link")
		}
		if n := got(); n != 0 {
			t.Errorf("b saw %d requests over a cut link", n)
		}
		net.Heal()
		net.CutOneWay("b", "a")
		if err := requestVote(a); err == nil {
			t.Error("an answer crossed a cut link")
		}
		if n := got(); n != 1 {
			t.Errorf("b saw %d requests, want the one whose answer was lost", n)
		}
		net.Heal()
		if err := requestVote(a); err != nil {
			t.Errorf("healed: %v", err)
		}
	})
}

func requestVote(t *simnet.Transport) error {
	return t.RequestVote("b", "b", &raft.RequestVoteRequest{Term: 1}, &raft.RequestVoteResponse{})
}

// answerVotes returns the number of requests to t.
func answerVotes(t *simnet.Transport) func() int {
	var mu sync.Mutex
	count := 0
	stopped := t.Done()
	go func() {
		for {
			select {
			case rpc := <-t.Consumer():
				mu.Lock()
				count++
				mu.Unlock()
				rpc.Respond(&raft.RequestVoteResponse{Term: 1, Granted: true}, nil)
			case <-stopped:
				return
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

func TestDelayCountsInBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		defer net.Close()
		a, b := net.Transport("a"), net.Transport("b")
		answerVotes(b)
		net.SetDelay(func(from, _ raft.ServerID) time.Duration {
			if from == "a" {
				return 30 * time.Millisecond
			}
			return 2 * time.Second
		})
		began := time.Now()
		if err := requestVote(a); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2030*time.Millisecond {
			t.Errorf("the round trip took %v, want 2.03s", took)
		}
	})
}

func TestLossDropsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(7)
		defer net.Close()
		a, b := net.Transport("a"), net.Transport("b")
		answerVotes(b)
		net.SetLoss(func(from, _ raft.ServerID) float64 {
			if from == "a" {
				return 0.5
			}
			return 0
		})
		lost := 0
		for range 1000 {
			if requestVote(a) != nil {
				lost++
			}
		}
		if lost < 400 || lost > 600 {
			t.Errorf("%d of 1000 messages lost, want about half", lost)
		}
	})
}

func TestCrashedNodeRefusesAndReturnsOnItsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 3)
		defer c.stopAll()
		leader := c.awaitLeader()
		c.mustWrite(leader, "one")
		c.awaitConverged()
		c.crashNode(leader)
		fresh := c.awaitLeader(leader)
		c.mustWrite(fresh, "two")
		c.startNode(leader)
		if got := c.awaitConverged(); got != "one two " {
			t.Errorf("applied %q", got)
		}
	})
}

func TestFollowerThatIsFarBehindGetsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 3)
		defer c.stopAll()
		leader := c.awaitLeader()
		late := c.ids[0]
		if late == leader {
			late = c.ids[1]
		}
		c.net.Isolate(late)
		for range 50 {
			c.mustWrite(leader, string(bytes.Repeat([]byte("x"), 10_000))) // several chunks in all
		}
		if err := c.rafts[leader].Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		c.net.Heal()
		c.awaitConverged()
		if list, _ := c.disks[late].Snapshots.List(); len(list) == 0 {
			t.Error("the late node caught up without a snapshot")
		}
	})
}

func TestFollowersKeepUpOverSlowAndLossyLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 3)
		defer c.stopAll()
		c.awaitLeader()
		c.net.SetDelay(func(_, _ raft.ServerID) time.Duration { return 20 * time.Millisecond })
		c.net.SetLoss(func(_, _ raft.ServerID) float64 { return 0.02 })
		acknowledged := 0
		for i := range 200 {
			if c.proposeValue(c.awaitLeader(), fmt.Sprint(i)) == nil {
				acknowledged++
			}
		}
		c.net.SetLoss(nil)
		c.awaitConverged()
		if acknowledged < 100 {
			t.Errorf("only %d of 200 writes acknowledged", acknowledged)
		}
	})
}

func TestCloseFailsCallsAndIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		a, _ := net.Transport("a"), net.Transport("b")
		failed := make(chan error, 1)
		go func() { failed <- requestVote(a) }() // b's inbox is not read
		synctest.Wait()
		net.Close()
		net.Close()
		if err := <-failed; err == nil {
			t.Error("a call succeeded on a closed network")
		}
		if err := requestVote(a); err == nil {
			t.Error("a new call succeeded on a closed network")
		}
	})
}
