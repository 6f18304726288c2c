package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const workers = 6

// build makes the binary under test, or takes the one that QUORATE_BINARY names.
func build(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("QUORATE_BINARY"); named != "" {
		return named
	}
	binary := filepath.Join(t.TempDir(), "quorate")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "../cmd/quorate").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// TestKillTheLeader kills or pauses whoever leads, again and again, while workers allocate, release, repeat and read.
// CHAOS_SECONDS sets how long; `make chaos` takes minutes.
func TestKillTheLeader(t *testing.T) {
	length := 12 * time.Second
	if s := os.Getenv("CHAOS_SECONDS"); s != "" {
		parsed, err := time.ParseDuration(s + "s")
		if err != nil {
			t.Fatalf("CHAOS_SECONDS: %v", err)
		}
		length = parsed
	}
	cluster, err := Start(build(t), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	c, err := client.New(cluster.URLs())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length+2*time.Minute)
	defer cancel()
	if err := SetUp(ctx, c, workers); err != nil {
		t.Fatalf("%v\n%s", err, cluster.Logs())
	}
	history := runUnderFaults(ctx, t, cluster, c, length)
	operations := history.Operations()
	if err := Check(operations); err != nil {
		t.Error(err)
	}
	if err := CheckFinal(ctx, cluster.URLs(), operations); err != nil {
		t.Error(err)
	}
	report(t, operations)
	if t.Failed() {
		t.Log(cluster.Logs())
	}
}

func runUnderFaults(ctx context.Context, t *testing.T, cluster *Cluster, c *client.Client, length time.Duration) *History {
	t.Helper()
	working, stop := context.WithTimeout(ctx, length)
	defer stop()
	faults := make(chan int)
	go func() { faults <- breakLeaders(working, t, cluster, c) }()
	history, err := Run(working, cluster.URLs(), workers, uint64(time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	if n := <-faults; n == 0 {
		t.Error("no leader was broken, so this run proves nothing")
	}
	return history
}

// breakLeaders kills and pauses leaders in turn until ctx ends, and leaves all nodes running.
func breakLeaders(ctx context.Context, t *testing.T, cluster *Cluster, c *client.Client) int {
	t.Helper()
	broken := 0
	for pause(ctx, 1500*time.Millisecond) {
		status, err := c.Cluster.GetStatus(ctx, &quoratev1.GetStatusRequest{Local: true})
		leader := cluster.Index(status.GetLeaderId())
		if err != nil || leader < 0 {
			continue
		}
		if broken%2 == 0 {
			err = cluster.Kill(leader)
			pause(ctx, 2*time.Second)
			err = errors.Join(err, cluster.Restart(leader))
		} else {
			err = cluster.Signal(leader, syscall.SIGSTOP)
			pause(ctx, 4*time.Second)
			err = errors.Join(err, cluster.Signal(leader, syscall.SIGCONT))
		}
		if err != nil {
			t.Errorf("break the leader: %v", err)
			return broken
		}
		broken++
	}
	return broken
}

// pause waits, and answers false if ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func report(t *testing.T, operations []Operation) {
	t.Helper()
	counts := map[Verdict]int{}
	for _, o := range operations {
		counts[o.Verdict]++
	}
	t.Logf("%d granted, %d denied, %d released, %d read, %d without verdict",
		counts[Granted], counts[Denied], counts[Released], counts[Observed], counts[Unknown])
	if counts[Granted] == 0 || counts[Observed] == 0 {
		t.Error("hardly anything happened, so this run proves nothing")
	}
}
