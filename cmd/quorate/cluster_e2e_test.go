package main_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// membershipPatience bounds the whole test, which takes a few seconds on an idle machine.
const membershipPatience = 4 * time.Minute

// TestAClusterGrowsAndShrinksUnderLoad grows a cluster of real processes from one member to three and five, and then
// removes the first two, while clients write. No acknowledged write may be lost.
func TestAClusterGrowsAndShrinksUnderLoad(t *testing.T) {
	verify.Only(t) // TestRollingRestart also changes a cluster under load; package clustertest grows one in virtual time
	t.Parallel()
	ctx := withTimeout(t, membershipPatience)
	nodes := fiveServers(t)
	startServer(t, nodes[0])
	calls := clientOf(t, nodes)
	tree := smallTree()
	tree.Limits["cores"] = &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 1_000_000}} // of its nodes too
	if _, err := calls.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	load := startWriters(ctx, calls, 3)
	insist := func(code int, args string) outcome {
		t.Helper()
		return insistOn(ctx, t, code, append(append([]string{"cluster"}, strings.Fields(args)...), "--server",
			serverURLs(nodes), "--timeout", "50s")...)
	}
	for i := 1; i < 5; i++ {
		startProcess(t, nodes[i].commandLine()...)
		if i == 3 { // it has no address to join
			insist(0, "join "+nodes[i].gossip)
		}
		insist(0, fmt.Sprintf("wait --voters %d --healthy", i+1))
	}
	insist(0, "transfer-leader n3")
	insist(0, "wait --voters 5 --healthy")
	for i, id := range []string{"n1", "n2"} {
		insist(0, "remove "+id)
		insist(0, fmt.Sprintf("wait --voters %d --healthy", 4-i))
	}
	if end := insist(1, "remove n1"); !strings.Contains(end.stderr, "n1 is not a member") {
		t.Errorf("removed twice: %s", end.stderr)
	}
	if end := insist(0, "remove n1 --missing-ok"); !strings.Contains(end.stdout, "unchanged") {
		t.Errorf("removed twice: %s", end.stdout)
	}
	if end := insist(3, "remove n5"); !strings.Contains(end.stderr, "min-quorum is 3") {
		t.Errorf("below min-quorum: %s", end.stderr)
	}
	acknowledged := load.stopWriters()
	if len(acknowledged) < 20 {
		t.Errorf("only %d writes were acknowledged", len(acknowledged))
	}
	t.Logf("%d writes were acknowledged", len(acknowledged))
	held := allHeld(ctx, t, calls)
	for _, id := range acknowledged {
		if !held[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
}

// allHeld returns the ids of all held allocations, read page by page.
func allHeld(ctx context.Context, t *testing.T, calls *client.Client) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	for token := ""; ; {
		page, err := calls.Allocations.ListAllocations(ctx,
			&quoratev1.ListAllocationsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.GetAllocations() {
			held[a.GetId()] = true
		}
		if token = page.GetNextPageToken(); token == "" {
			return held
		}
	}
}

// fiveServers returns the flags of a server that forms a cluster alone and of four servers to add. The last one has no
// join address, so it must be added by command.
func fiveServers(t *testing.T) []serverFlags {
	t.Helper()
	dir, ports := t.TempDir(), servertest.FreePorts(t, 15)
	var list []serverFlags
	for i := range 5 {
		id := fmt.Sprintf("n%d", i+1)
		more := []string{"--stabilization-time", "1s"}
		switch i {
		case 0:
		case 3:
			more = append(more, "--bootstrap-expect", "0")
		default:
			more = append(more, "--bootstrap-expect", "0", "--join", ports[10])
		}
		list = append(list, serverFlags{id, filepath.Join(dir, id), ports[i], ports[5+i], ports[10+i], more})
	}
	return list
}

func serverURLs(nodes []serverFlags) string {
	var list []string
	for _, f := range nodes {
		list = append(list, f.baseURL())
	}
	return strings.Join(list, ",")
}

func clientOf(t *testing.T, nodes []serverFlags) *client.Client {
	t.Helper()
	c, err := client.New(strings.Split(serverURLs(nodes), ","))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// insistOn repeats a command until it ends with the expected exit code, because members may not know a new leader yet.
func insistOn(ctx context.Context, t *testing.T, code int, args ...string) outcome {
	t.Helper()
	for {
		end := runCommand(t, args...)
		if end.code == code {
			return end
		}
		if ctx.Err() != nil {
			t.Fatalf("quorate %s: exit code %d, want %d\n%s", strings.Join(args, " "), end.code, code, end.stderr)
		}
		pauseFor(ctx, 200*time.Millisecond)
	}
}

// writers allocate one unit at a time under ids of their own, and repeat each call until it is acknowledged.
type writers struct {
	cancel context.CancelFunc
	busy   sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
}

func startWriters(ctx context.Context, calls *client.Client, count int) *writers {
	w := &writers{}
	ctx, w.cancel = context.WithCancel(ctx)
	for writer := range count {
		w.busy.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				w.writeOne(ctx, calls, fmt.Sprintf("w%d-%d", writer, i))
			}
		})
	}
	return w
}

func (w *writers) writeOne(ctx context.Context, calls *client.Client, id string) {
	for ctx.Err() == nil {
		answer, err := calls.Allocations.Allocate(ctx, oneClaim(id, 1))
		if err == nil && answer.GetAllocation().GetFence() > 0 {
			w.mu.Lock()
			w.acknowledged = append(w.acknowledged, id)
			w.mu.Unlock()
			pauseFor(ctx, 10*time.Millisecond)
			return
		}
		pauseFor(ctx, 50*time.Millisecond)
	}
}

func (w *writers) stopWriters() []string {
	w.cancel()
	w.busy.Wait()
	return w.acknowledged
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
