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

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/workload"
	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

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
	config := workload.Config{Servers: cluster.URLs(), Seed: uint64(time.Now().UnixNano()), Recorder: history.NewRecorder(nil)}
	if err := workload.SetUp(ctx, config); err != nil {
		t.Fatalf("%v\n%s", err, cluster.Logs())
	}
	runUnderFaults(ctx, t, cluster, c, config, length)
	finals, err := check.Collect(ctx, cluster.URLs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := check.Judge(config.Recorder.History(), finals)
	t.Logf("seed %d\n%s", config.Seed, verdicts)
	if err := verdicts.Err(); err != nil {
		t.Errorf("%v\n%s", err, cluster.Logs())
	}
}

func runUnderFaults(ctx context.Context, t *testing.T, cluster *Cluster, c *client.Client, config workload.Config, length time.Duration) {
	t.Helper()
	working, stop := context.WithTimeout(ctx, length)
	defer stop()
	faults := make(chan int)
	go func() { faults <- breakLeaders(working, t, cluster, c) }()
	if err := workload.Run(working, config); err != nil {
		t.Error(err)
	}
	if n := <-faults; n == 0 {
		t.Error("no leader was broken, so this run proves nothing")
	}
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
