package clustertest_test

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

var (
	scaleNodes  = flag.Int("nodes", 1_000, "nodes of trees in TestScale, at most 100,000")
	scaleLeases = flag.Int("leases", 1_000, "leases in TestScale; a multiple of 1,000")
	scaleTime   = flag.Duration("steady", 20*time.Second, "virtual time in which TestScale renews leases")
)

const (
	scaleTTL   = 10 * time.Minute
	renewEvery = scaleTTL / 3
	scaleJobs  = 100 // a second
)

// TestScale runs three nodes in virtual time with many nodes of trees and many leases. The leases are granted, renewed
// one by one, and some end at once; jobs come and go; the leader is lost and starts again from its disk; a disk is
// lost. The test prints the table of docs/performance.md, and fails if a lease ends that was renewed or one stays that
// was not. Log entries, bytes and virtual times are exact and repeatable; CPU time is that of all nodes and callers in
// this process.
func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startScale(t)
		s.measure("create trees", s.createTrees)
		s.measure("grant all leases", s.grantLeases)
		s.measure("renew", func() { s.renewAndRunJobs(*scaleTime/2, 0) })
		s.measure("renew, and run 100 jobs a second", func() { s.renewAndRunJobs(*scaleTime/2, scaleJobs) })
		s.measure("save a snapshot on each node", s.awaitSnapshots)
		s.measure("lose the leader", s.loseLeader)
		s.measure("start it again", s.restartLost)
		s.measure("lose a disk", s.loseDisk)
		s.measure("a tenth of the leases ends", s.endTenth)
		s.c.AwaitConverged()
		s.c.CheckEqual()
		t.Logf("%d nodes of trees, %d leases\n%s\n%s", *scaleNodes, *scaleLeases,
			"| phase | virtual time | log entries | a second | GB a day | MB in the log | CPU |",
			strings.Join(s.table, "\n"))
	})
}

type scaleRun struct {
	t    *testing.T
	c    *clustertest.Cluster
	logs map[string]*countedLog
	lost string
	// leaves are those of all trees in turn.
	leaves []leafPlace
	// renewed is the number of the lease that was renewed last; from ending on leases are not renewed.
	renewed, ending int
	jobs            int
	// table is what the phases took.
	table []string
}

type leafPlace struct{ tree, path string }

type countedLog struct {
	raft.LogStore

	entries, bytes atomic.Int64
}

func (l *countedLog) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l *countedLog) StoreLogs(entries []*raft.Log) error {
	for _, e := range entries {
		l.entries.Add(1)
		l.bytes.Add(int64(len(e.Data)))
	}
	return l.LogStore.StoreLogs(entries)
}

func startScale(t *testing.T) *scaleRun {
	t.Helper()
	s := &scaleRun{t: t, logs: map[string]*countedLog{}}
	s.c = clustertest.New(t, 3, clustertest.WithParts(func(id string) cluster.Parts {
		disk := s.c.Disk(id)
		s.logs[id] = &countedLog{LogStore: disk}
		return cluster.Parts{Logs: s.logs[id], Stable: disk, Snapshots: disk.Snapshots}
	}))
	s.c.StartMissing()
	s.c.AwaitConverged()
	return s
}

func (s *scaleRun) measure(phase string, run func()) {
	s.t.Helper()
	leader := s.c.Leader().Status().ID
	log := s.logs[leader]
	entries, bytes, began, cpu := log.entries.Load(), log.bytes.Load(), time.Now(), processorTime(s.t)
	run()
	entries, bytes = log.entries.Load()-entries, log.bytes.Load()-bytes
	took := time.Since(began)
	used := processorTime(s.t) - cpu
	rates := "| | |"
	if took > 10*time.Second {
		rates = fmt.Sprintf("| %.0f | %.2f |", float64(entries)/took.Seconds(), float64(bytes)/1e9*86400/took.Seconds())
	}
	s.table = append(s.table, fmt.Sprintf("| %s | %v | %d %s %.1f | %v |", phase, took.Round(time.Millisecond), entries,
		rates, float64(bytes)/1e6, used.Round(time.Millisecond)))
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// createTrees creates trees of at most 20,000 nodes in three levels: a root, divisions, and a hundred projects in each.
func (s *scaleRun) createTrees() {
	const largestTree, projects = 20_000, 100
	for left := *scaleNodes; left > 0; left -= largestTree {
		name := fmt.Sprint("site", len(s.leaves))
		limits := func(most quota.Amount) []quota.ResourceLimit {
			return []quota.ResourceLimit{{Resource: clustertest.Resource, Limit: quota.AtMost(most)}}
		}
		nodes := []quota.NodeSpec{{Limits: limits(clustertest.TreeLimit * 10)}}
		for division := 0; len(nodes)+1+projects <= min(left, largestTree); division++ {
			path := fmt.Sprintf("division%04d", division)
			nodes = append(nodes, quota.NodeSpec{Path: path, Limits: limits(clustertest.TreeLimit)})
			for project := range projects {
				leaf := leafPlace{name, fmt.Sprintf("%s/project%04d", path, project)}
				nodes = append(nodes, quota.NodeSpec{Path: leaf.path, Limits: limits(clustertest.TreeLimit / 10)})
				s.leaves = append(s.leaves, leaf)
			}
		}
		s.c.MustPropose(quota.ApplyTrees{
			Meta: quota.ChangeMeta{Actor: "test", Reason: "scale"},
			Trees: []quota.TreeSpec{{
				Name: name, Resources: []quota.Resource{{Name: clustertest.Resource, Unit: quota.Count}}, Nodes: nodes,
			}},
		})
	}
}

func (s *scaleRun) request(id string, at int, ttl time.Duration) quota.Allocate {
	leaf := s.leaves[at%len(s.leaves)]
	return quota.Allocate{ID: id, TTL: quota.Span(ttl.Milliseconds()), Claims: []quota.Claim{{
		Tree: leaf.tree, Node: leaf.path, Amounts: quota.Vector{{Resource: clustertest.Resource, Amount: 1}},
	}}}
}

// propose requires that all commands are accepted.
func (s *scaleRun) propose(commands ...quota.Command) {
	s.t.Helper()
	outcomes, _, err := s.c.Leader().Propose(s.t.Context(), commands...)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Refused != nil || o.Decision != nil && !o.Decision.Granted {
			s.t.Fatalf("not accepted: %+v", o)
		}
	}
}
