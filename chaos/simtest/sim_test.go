package simtest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/workload"
	"github.com/quorate/quorate/internal/verify"
)

var (
	seeds    = flag.Int("seeds", verify.Scale(10, 200), "how many seeds to try")
	first    = flag.Uint64("first", 1, "the first seed")
	workName = flag.String("workload", "", "workloads to play, with commas between them; a few by the seed if empty")
	evidence = flag.String("evidence", "", "a folder for histories of seeds that fail")
)

// length is how long callers work and the nemesis strikes, in virtual time.
const length = 12 * time.Second

// TestSeeds plays one run after the other.
func TestSeeds(t *testing.T) {
	total := &tally{examined: map[string]int{}}
	t.Cleanup(func() { t.Logf("examined in all: %v", total.examined) })
	for i := range *seeds {
		seed := *first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			play(t, seed, chosen(seed), total)
		})
	}
}

// tally is how much was examined in all runs, by promise.
type tally struct {
	mu       sync.Mutex
	examined map[string]int
}

func (c *tally) add(verdicts check.Verdicts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range verdicts {
		c.examined[v.Promise] += v.Examined()
	}
}

// TestRegressions plays the seeds that found something once.
func TestRegressions(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "regressions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil || len(fields) != 2 {
			t.Fatalf("regressions.txt: %q is no seed with its workloads", lines.Text())
		}
		t.Run(line, func(t *testing.T) { play(t, seed, strings.Split(fields[1], ","), &tally{examined: map[string]int{}}) })
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// chosen are the workloads of a run: three that write, one that reads and one that watches.
func chosen(seed uint64) []string {
	if *workName != "" {
		return strings.Split(*workName, ",")
	}
	others := []string{"read", "watch"}
	writers := slices.DeleteFunc(workload.Names(), func(name string) bool { return slices.Contains(others, name) })
	random := rand.New(rand.NewPCG(seed, 2))
	names := slices.Clone(others)
	for _, i := range random.Perm(len(writers))[:3] {
		names = append(names, writers[i])
	}
	slices.Sort(names)
	return names
}

// play runs one seed in a bubble and judges it outside, where a search that takes too long is ended by a real clock.
func play(t *testing.T, seed uint64, names []string, total *tally) {
	t.Helper()
	var recorded history.History
	var finals check.Finals
	struck := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, 3+2*int(seed%3/2))
		config := workload.Config{
			Servers: w.urls(apiPort), Boskos: w.urls(boskosPort), HTTP: end{w.wires, outside}, Seed: seed, Names: names, Clients: 2,
			Pause: 40 * time.Millisecond, Timeout: 2 * time.Second, Recorder: history.NewRecorder(nil),
		}
		if err := workload.SetUp(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		n := &nemesis{world: w, random: rand.New(rand.NewPCG(seed, 3)), struck: struck}
		n.work(config)
		finals = n.settle(config)
		recorded = config.Recorder.History()
	})
	verdicts := check.JudgeWith(recorded, finals, check.Options{Pictures: *evidence})
	total.add(verdicts)
	if err := verdicts.Err(); err != nil || t.Failed() {
		t.Errorf("%v\n%s\nblows: %v\nagain: go test ./chaos/simtest -run TestSeeds -args -seeds 1 -first %d -workload %s",
			err, verdicts, struck, seed, strings.Join(names, ","))
		keep(t, seed, recorded, finals)
	}
}

// work strikes while callers work.
func (n *nemesis) work(config workload.Config) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), length)
	defer cancel()
	done := make(chan error)
	go func() { done <- workload.Run(ctx, config) }()
	for ctx.Err() == nil {
		time.Sleep(time.Duration(n.random.IntN(1500)) * time.Millisecond)
		if ctx.Err() == nil {
			n.strike()
		}
	}
	n.repair()
	if err := <-done; err != nil {
		n.t.Error(err)
	}
}

// settle heals, waits until all is well, and reads the final states.
func (n *nemesis) settle(config workload.Config) check.Finals {
	n.t.Helper()
	n.repair()
	n.Leader()
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Minute)
	defer cancel()
	finals, err := check.Collect(ctx, config.Servers, config.HTTP)
	if err != nil {
		n.t.Error(err)
	}
	n.CheckEqual()
	return finals
}

// keep leaves what was seen behind, if somebody asked for it.
func keep(t *testing.T, seed uint64, h history.History, f check.Finals) {
	t.Helper()
	if *evidence == "" {
		return
	}
	path := filepath.Join(*evidence, fmt.Sprintf("history-%d.jsonl", seed))
	if err := history.Write(path, h); err != nil {
		t.Error(err)
	}
	if err := check.WriteFinals(check.FinalsBeside(path), f); err != nil {
		t.Error(err)
	}
	t.Logf("judge again: CHAOS_EVIDENCE=%s go test -run TestJudgeAgain ./chaos/...", path)
}
