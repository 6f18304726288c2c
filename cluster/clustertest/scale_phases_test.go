package clustertest_test

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func leaseID(i int) string { return fmt.Sprint("lease", i) }

// grantLeases grants leases on all leaves in turn, evenly over the time between two renewals of a lease.
func (s *scaleRun) grantLeases() {
	const batch = 1_000
	for from := 0; from < *scaleLeases; from += batch {
		var commands []quota.Command
		for i := from; i < from+batch; i++ {
			commands = append(commands, s.request(leaseID(i), i, scaleTTL))
		}
		s.propose(commands...)
		time.Sleep(renewEvery * batch / time.Duration(*scaleLeases))
	}
	s.ending = *scaleLeases
}

// renewAndRunJobs renews each lease by a call of its own.
func (s *scaleRun) renewAndRunJobs(span time.Duration, jobsASecond int) {
	const tick = 50 * time.Millisecond
	var calls sync.WaitGroup
	began, renewals := time.Now(), 0
	for time.Since(began) < span {
		time.Sleep(tick)
		leader := s.c.Leader()
		for due := s.dueBy(time.Since(began)); renewals < due; renewals++ {
			id := leaseID(s.renewed)
			s.renewed = (s.renewed + 1) % s.ending
			calls.Go(func() { s.renew(leader, id) })
		}
		for range jobsASecond * int(tick/time.Millisecond) / 1000 {
			s.jobs++
			job := fmt.Sprint("job", s.jobs)
			request := s.request(job, s.jobs, 0)
			calls.Go(func() {
				s.propose(request)
				s.propose(quota.Release{ID: job})
			})
		}
	}
	calls.Wait()
}

func (s *scaleRun) dueBy(span time.Duration) int {
	return int(float64(*scaleLeases) * span.Seconds() / renewEvery.Seconds())
}

func (s *scaleRun) renew(leader *cluster.Node, id string) {
	outcomes, _, err := leader.ProposeBatched(s.t.Context(), quota.Renew{ID: id})
	if err != nil || outcomes[0].Refused != nil {
		s.t.Errorf("renewing %s: %+v, %v", id, outcomes, err)
	}
}

// awaitSnapshots has every node save a snapshot, so that the phases after it begin with one of the whole state.
func (s *scaleRun) awaitSnapshots() {
	for _, n := range s.c.Nodes() {
		if err := n.Snapshot(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	list, err := s.c.Disk("n1").Snapshots.List()
	if err != nil || len(list) == 0 {
		s.t.Fatalf("n1 has %d snapshots, %v", len(list), err)
	}
	s.t.Logf("a snapshot has %.1f MB; the heap of all nodes together has %.1f MB", float64(list[0].Size)/1e6,
		heapInUse()/1e6)
}

func heapInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// loseLeader ends the leader without a message to the others, and waits for the first acknowledged write.
func (s *scaleRun) loseLeader() {
	s.lost = s.c.Leader().Status().ID
	s.c.Crash(s.lost)
	s.c.MustPropose(s.request("after", 0, 0))
	s.c.MustPropose(quota.Release{ID: "after"})
}

func (s *scaleRun) restartLost() {
	s.c.StartNode(s.lost)
	s.c.AwaitConverged()
}

// loseDisk replaces the disk of the node that was lost by an empty one: the leader sends it a snapshot.
func (s *scaleRun) loseDisk() {
	s.c.Crash(s.lost)
	s.c.WipeDisk(s.lost)
	s.c.StartNode(s.lost)
	s.c.AwaitConverged()
}

// endTenth renews all leases but a tenth, until that tenth has ended.
func (s *scaleRun) endTenth() {
	s.ending = *scaleLeases / 10 * 9
	s.renewed = 0
	s.renewAndRunJobs(scaleTTL+renewEvery, 0)
	var counts quota.Counts
	read := func(v ledger.Reader) { counts = v.Counts() }
	if _, err := s.c.Leader().Read(s.t.Context(), cluster.ReadOptions{}, read); err != nil {
		s.t.Fatal(err)
	}
	if counts.Held != s.ending || counts.Leases != s.ending {
		s.t.Errorf("%d allocations are held, %d of them leases; want %d, which were renewed", counts.Held,
			counts.Leases, s.ending)
	}
}
