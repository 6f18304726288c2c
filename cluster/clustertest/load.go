package clustertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// callInterval is the pause of a caller before each attempt.
const callInterval = 25 * time.Millisecond

// Load is a set of callers that allocate one unit after the other, and retry each under the same id until it is
// acknowledged.
type Load struct {
	c    *Cluster
	stop chan struct{}
	once sync.Once
	busy sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]bool
	unknown      int
	refused      int
}

// StartLoad starts callers. They run until Stop or the end of the test.
func (c *Cluster) StartLoad(callers int) *Load {
	l := &Load{c: c, stop: make(chan struct{}), acknowledged: map[string]bool{}}
	for caller := range callers {
		l.busy.Go(func() { l.runCaller(caller) })
	}
	c.t.Cleanup(func() { l.Stop() })
	return l
}

func (l *Load) runCaller(caller int) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("load-%d-%d", caller, i)
		if !l.retryUntilGranted(NewAllocate(id, 1)) {
			return
		}
	}
}

// retryUntilGranted is false if the load was stopped before.
func (l *Load) retryUntilGranted(request quota.Allocate) bool {
	for {
		select {
		case <-l.stop:
			return false
		case <-time.After(callInterval):
		}
		for _, n := range l.c.Nodes() {
			if n.IsLeader() && l.tryOnce(n, request) {
				return true
			}
		}
	}
}

func (l *Load) tryOnce(n *cluster.Node, request quota.Allocate) bool {
	outcome, err := Propose(n, request)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && outcome.Decision != nil && outcome.Decision.Granted {
		l.acknowledged[request.ID] = true
		return true
	}
	if e := (*cluster.Error)(nil); errors.As(err, &e) && !e.NotApplied {
		l.unknown++
		return false
	}
	l.refused++
	return false
}

// Acknowledged returns the number of requests acknowledged so far.
func (l *Load) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// Stop ends the load. It returns the number of acknowledged requests and of attempts with an unknown outcome.
func (l *Load) Stop() (acknowledged, unknown int) {
	l.once.Do(func() { close(l.stop) })
	l.busy.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged), l.unknown
}

// Check verifies that the ledger holds everything that was acknowledged, once, and that anything else in it comes from
// attempts with an unknown outcome.
func (l *Load) Check() {
	l.c.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	used, _, err := ReadUsed(l.c.Leader(), cluster.ReadOptions{})
	if err != nil {
		l.c.t.Fatal(err)
	}
	if lo, hi := len(l.acknowledged), len(l.acknowledged)+l.unknown; int(used) < lo || int(used) > hi {
		l.c.t.Errorf("the ledger holds %d, want %d to %d", used, lo, hi)
	}
	ctx := l.c.t.Context()
	_, err = l.c.Leader().Read(ctx, cluster.ReadOptions{}, func(v ledger.Reader) {
		for id := range l.acknowledged {
			if _, missing := v.Allocation(id); missing != nil {
				l.c.t.Errorf("%s was acknowledged and is lost: %v", id, missing)
			}
		}
	})
	if err != nil {
		l.c.t.Fatal(err)
	}
}
