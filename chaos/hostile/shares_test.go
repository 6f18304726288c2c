package hostile

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/verify"
)

// These make a process of this test binary a holder of a share.
const (
	holderServers = "QUORATE_SHARE_HOLDER" // servers, with commas between them
	holderLog     = "QUORATE_SHARE_LOG"    // the file for what it used and when
	holderCareful = "QUORATE_SHARE_VALID"  // "no": it does not check that its grants are valid
)

// TestSharesOfPausedAndKilledHolders pauses holders of shares for longer than their leases last, and kills them. By the
// clock of the machine, what all of them used together never exceeds the limit. Holders that do not check their grants
// after a pause do exceed it, so the test can tell.
func TestSharesOfPausedAndKilledHolders(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes")
	}
	t.Parallel() // mostly waits
	c := startCluster(t, clusterOptions{size: 1})
	c.applyTree(t, 20)
	if most := c.playHolders(t, "yes"); most > 20 || most < 10 {
		t.Errorf("%d of 20 units were in use at one time", most)
	}
	if !verify.Enabled() {
		return
	}
	time.Sleep(4 * time.Second) // the leases of killed holders expire
	if most := c.playHolders(t, "no"); most <= 20 {
		t.Errorf("careless holders used %d units at one time: the test finds nothing", most)
	}
}

// playHolders runs three holders, pauses and kills them, and returns how much was in use at one time.
func (c *cluster) playHolders(t *testing.T, careful string) int64 {
	t.Helper()
	dir, end := t.TempDir(), time.Now().Add(time.Duration(verify.Scale(12, 30))*time.Second)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for run := 0; time.Now().Before(end); run++ {
				c.playHolder(t, filepath.Join(dir, fmt.Sprintf("%d-%d", i, run)), careful, random, end)
			}
		})
	}
	all.Wait()
	return mostInUse(t, dir)
}

func (c *cluster) playHolder(t *testing.T, log, careful string, random *rand.Rand, end time.Time) {
	t.Helper()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderServers+"="+c.nodes[0].URL(), holderLog+"="+log,
		holderCareful+"="+careful)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Error(err)
		return
	}
	for range 2 {
		time.Sleep(2*time.Second + rand.N(time.Second))
		_ = holder.Process.Signal(syscall.SIGSTOP) // it may have ended, which shows in what it used
		time.Sleep(2*time.Second + time.Duration(random.Int64N(int64(5*time.Second))))
		_ = holder.Process.Signal(syscall.SIGCONT)
		if time.Now().After(end) {
			break
		}
	}
	time.Sleep(rand.N(time.Second))
	_ = holder.Process.Kill()
	_ = holder.Wait()
}

type usePoint struct{ at, units int64 }

// mostInUse reads what all holders used, and returns the most at one time.
func mostInUse(t *testing.T, dir string) (most int64) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(logs) < 3 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	var points []usePoint
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			var from, to, units int64
			if n, _ := fmt.Sscan(line, &from, &to, &units); n == 3 && strings.HasSuffix(line, "\n") {
				points = append(points, usePoint{from, units}, usePoint{to, -units})
			}
		}
	}
	slices.SortFunc(points, func(a, b usePoint) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.units, b.units)) // what ends at a moment comes first
	})
	inUse := int64(0)
	for _, p := range points {
		inUse += p.units
		most = max(most, inUse)
	}
	t.Logf("%d pieces of use in %d processes, at most %d units at one time", len(points)/2, len(logs), most)
	return most
}

// holdShare is a process with a share. Five holders in it use what they are granted in pieces of some milliseconds: a
// piece begins and ends at moments at which the grant was valid, so it was valid all the time between.
func holdShare(servers string) error {
	c, err := client.New(strings.Split(servers, ","))
	if err != nil {
		return err
	}
	share, err := client.NewShare(c, client.ShareConfig{
		Tree: "t", Resource: "cores", Step: 5, Max: 20, TTL: 2 * time.Second, IdleTime: time.Second,
	})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(os.Getenv(holderLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	out, careful := bufio.NewWriterSize(log, 64), os.Getenv(holderCareful) == "yes"
	var mu sync.Mutex
	for range 5 {
		go func() {
			for {
				g, err := share.Acquire(context.Background(), 1+rand.Int64N(5))
				if err != nil {
					return
				}
				useGrant(g, careful, func(from, to int64) {
					mu.Lock()
					defer mu.Unlock()
					_, _ = fmt.Fprintln(out, from, to, g.Units())
					_ = out.Flush() // a line that is not written is not counted
				})
				g.Release()
			}
		}()
	}
	select {}
}

// useGrant uses a grant in some hundred pieces, or for as long as it is valid.
func useGrant(g *client.Grant, careful bool, use func(from, to int64)) {
	last := int64(0)
	for range 200 + rand.IntN(400) {
		now := monotonicNow()
		if careful && !g.Valid() {
			return
		}
		if last > 0 {
			use(last, now)
		}
		if last = now; !careful {
			last = 0
			use(now, now+int64(5*time.Millisecond)) // without the check, a piece must not span a pause
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// monotonicNow reads the clock that all processes of the machine share.
func monotonicNow() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}
