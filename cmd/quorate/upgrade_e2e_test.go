package main_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// callers allocate one core at a time through the Go client until they are stopped. They reuse their ids after a while,
// so that the capacity suffices for a run of any length.
type callers struct {
	stop chan struct{}
	busy sync.WaitGroup

	mu     sync.Mutex
	held   map[string]bool
	faults []error
}

const idsPerCaller = 300

func startCallers(t *testing.T, flags []serverFlags) *callers {
	t.Helper()
	c := &callers{stop: make(chan struct{}), held: map[string]bool{}}
	for i := range flags {
		urls := []string{flags[i].baseURL(), flags[(i+1)%len(flags)].baseURL(), flags[(i+2)%len(flags)].baseURL()}
		quorate, err := client.New(urls, client.WithPatience(2*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		c.busy.Go(func() { c.callRepeatedly(quorate, fmt.Sprint("caller-", i)) })
	}
	t.Cleanup(func() { c.stopCallers() })
	return c
}

func (c *callers) callRepeatedly(quorate *client.Client, name string) {
	for i := 0; ; i++ {
		select {
		case <-c.stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		id := fmt.Sprint(name, "-", i%idsPerCaller)
		_, err := quorate.Allocations.Allocate(context.Background(), oneClaim(id, 1))
		c.mu.Lock()
		if err == nil {
			c.held[id] = true
		} else {
			c.faults = append(c.faults, err)
		}
		c.mu.Unlock()
	}
}

func (c *callers) stopCallers() (held map[string]bool, faults []error) {
	c.mu.Lock()
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.mu.Unlock()
	c.busy.Wait()
	return c.held, c.faults
}

// checkResults stops the callers and checks that none has seen an error and that every server has all their
// acknowledged allocations.
func (c *callers) checkResults(t *testing.T, flags []serverFlags) {
	t.Helper()
	held, faults := c.stopCallers()
	if len(faults) > 0 || len(held) == 0 {
		t.Fatalf("%d calls were answered, and these failed: %v", len(held), faults)
	}
	for _, f := range flags {
		if used := f.usedCores(t); used != int64(len(held)) {
			t.Errorf("%s says that %d cores are held, want %d", f.id, used, len(held))
		}
	}
	for id := range held {
		if _, err := whileUnavailable(t, flags[0].allocationClient().GetAllocation,
			&quoratev1.GetAllocationRequest{Id: id}); err != nil {
			t.Errorf("%s was granted and is lost: %v", id, err)
		}
	}
}

// runUntil repeats a command until it ends with the exit code and prints the text, because leaders change and gossip is
// delayed.
func runUntil(t *testing.T, f serverFlags, line string, code int, says string) outcome {
	t.Helper()
	var end outcome
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if end = f.runLine(t, line); end.code == code && strings.Contains(end.stdout+end.stderr, says) {
			return end
		}
	}
	t.Fatalf("%s ends with %d\n%s%s\nwant %d and %q", line, end.code, end.stdout, end.stderr, code, says)
	return end
}

// fleet is three servers under load.
type fleet struct {
	flags   []serverFlags
	servers map[string]*process
	*callers
}

func startFleet(t *testing.T, program string) *fleet {
	t.Helper()
	f := &fleet{flags: threeServers(t), servers: map[string]*process{}}
	for i := range f.flags {
		f.servers[f.flags[i].id] = startCommand(t, serverCommand(program, f.flags[i]))
	}
	for _, flags := range f.flags {
		awaitReady(t, f.servers[flags.id], flags)
	}
	f.flags[0].applyTree(t)
	f.callers = startCallers(t, f.flags)
	return f
}

// restartServer stops one server cleanly and starts the given version in its place.
func (f *fleet) restartServer(t *testing.T, id, program string) {
	t.Helper()
	flags := f.flagsOf(id)
	f.servers[id].stopCleanly(t)
	f.servers[id] = startVersion(t, program, flags)
}

func (f *fleet) flagsOf(id string) serverFlags {
	return f.flags[slices.IndexFunc(f.flags, func(s serverFlags) bool { return s.id == id })]
}

func (f *fleet) awaitLeader(t *testing.T) string {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, flags := range f.flags {
			status, err := flags.memberStatus(t)
			if err == nil && status.GetLeaderId() != "" {
				return status.GetLeaderId()
			}
		}
	}
	t.Fatal("there is no leader")
	return ""
}

// TestRollingRestart restarts three servers one after the other, the leader last, without a failed call.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t, binary)
	runUntil(t, f.flags[0], "cluster check", 0, "3 of 3 are healthy")
	order := []string{"n1", "n2", "n3"}
	leads := f.awaitLeader(t)
	slices.SortStableFunc(
		order, func(a, b string) int { return strings.Compare(fmt.Sprint(a == leads), fmt.Sprint(b == leads)) })
	for _, id := range order {
		f.restartServer(t, id, binary)
	}
	f.checkResults(t, f.flags)
}

// TestUpgradeFromThePreviousRelease upgrades three servers one by one under load. What needs a newer feature level is
// tested in cluster/clustertest: no release has one yet.
func TestUpgradeFromThePreviousRelease(t *testing.T) {
	verify.Only(t) // builds the previous release; TestRollingRestart covers restarts in short mode
	t.Parallel()
	_, old := previousRelease.buildOnce(t, previous)
	f := startFleet(t, old)
	for _, id := range []string{"n1", "n2", "n3"} {
		f.restartServer(t, id, binary)
		if id == "n2" { // an upgraded server that leads, and a downgrade
			for leads := f.awaitLeader(t); leads != "n3"; leads = f.awaitLeader(t) {
				f.restartServer(t, leads, map[bool]string{true: old, false: binary}[leads == "n1"])
			}
			f.restartServer(t, "n1", binary)
		}
	}
	if same := runUntil(t, f.flags[0], "digest list --now", 0, "agrees").stdout; strings.Count(same, "agrees") != 3 {
		t.Errorf("the members do not hold the same:\n%s", same)
	}
	f.checkResults(t, f.flags)
}
