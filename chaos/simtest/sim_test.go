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
	seedCount = flag.Int("seeds", verify.Scale(10, 200), "how many seeds to try")
	firstSeed = flag.Uint64("first", 1, "the first seed")
	workName  = flag.String("workload", "",
		"workloads to play, with commas between them; a few by the seed if empty")
	evidenceFolder = flag.String("evidence", "", "a folder for histories of seeds that fail")
)

// workTime is how long clients work and faults are injected, in virtual time.
const workTime = 12 * time.Second

// TestSeeds plays one run for each seed.
func TestSeeds(t *testing.T) {
	total := &examinedCounts{examined: map[string]int{}}
	t.Cleanup(func() { t.Logf("examined in all: %v", total.examined) })
	for i := range *seedCount {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playSeed(t, seed, chooseWorkloads(seed), total)
		})
	}
}

type examinedCounts struct {
	mu       sync.Mutex
	examined map[string]int
}

func (c *examinedCounts) addVerdicts(verdicts check.Verdicts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range verdicts {
		c.examined[v.Promise] += v.Examined()
	}
}

// TestRegressions plays the seeds that once found a bug.
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
			t.Fatalf("regressions.txt: %q is not a seed with its workloads", lines.Text())
		}
		t.Run(line, func(t *testing.T) {
			playSeed(t, seed, strings.Split(fields[1], ","), &examinedCounts{examined: map[string]int{}})
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func chooseWorkloads(seed uint64) []string {
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

// playSeed runs one seed in virtual time and judges it outside, where the timeout of a search is real.
func playSeed(t *testing.T, seed uint64, names []string, total *examinedCounts) {
	t.Helper()
	var recorded history.History
	var finals check.Finals
	injected := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(t, seed, 3+2*int(seed%3/2), "")
		config := workload.Config{
			Servers: w.nodeURLs(apiPort), Boskos: w.nodeURLs(boskosPort), HTTP: wireTransport{w.wires, callerSide},
			Seed: seed, Names: names, Clients: 2,
			Pause: 40 * time.Millisecond, Timeout: 2 * time.Second, Recorder: history.NewRecorder(nil),
		}
		if err := workload.SetUp(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		n := &faultInjector{simCluster: w, random: rand.New(rand.NewPCG(seed, 3)), injected: injected}
		n.injectFaults(config)
		finals = n.healAndCollect(config)
		recorded = config.Recorder.History()
	})
	verdicts := check.JudgeWith(recorded, finals, check.Options{Pictures: *evidenceFolder})
	total.addVerdicts(verdicts)
	if err := verdicts.Err(); err != nil || t.Failed() {
		t.Errorf("%v\n%s\nfaults: %v\nagain: go test -C chaos ./simtest -run TestSeeds -args -seeds 1 -first "+
			"%d -workload %s",
			err, verdicts, injected, seed, strings.Join(names, ","))
		keepEvidence(t, seed, recorded, finals)
	}
}

// injectFaults injects faults while clients work.
func (n *faultInjector) injectFaults(config workload.Config) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), workTime)
	defer cancel()
	done := make(chan error)
	go func() { done <- workload.Run(ctx, config) }()
	for ctx.Err() == nil {
		time.Sleep(time.Duration(n.random.IntN(1500)) * time.Millisecond)
		if ctx.Err() == nil {
			n.injectFault()
		}
	}
	n.repairCluster()
	if err := <-done; err != nil {
		n.t.Error(err)
	}
}

// healAndCollect heals the cluster, waits until it is healthy, and reads the final states.
func (n *faultInjector) healAndCollect(config workload.Config) check.Finals {
	n.t.Helper()
	n.repairCluster()
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

func keepEvidence(t *testing.T, seed uint64, h history.History, f check.Finals) {
	t.Helper()
	if *evidenceFolder == "" {
		return
	}
	path := filepath.Join(*evidenceFolder, fmt.Sprintf("history-%d.jsonl", seed))
	if err := history.Write(path, h); err != nil {
		t.Error(err)
	}
	if err := check.WriteFinals(check.FinalsBeside(path), f); err != nil {
		t.Error(err)
	}
	t.Logf("judge again: CHAOS_EVIDENCE=%s go test -C chaos -run TestJudgeAgain ./...", path)
}

// TestAnIdleClusterIsNotLate: states show civil time as of the last command.
func TestAnIdleClusterIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(t, 1, 3, "")
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		finals, err := check.Collect(ctx, w.nodeURLs(apiPort), wireTransport{w.wires, callerSide})
		if err != nil || finals.Missing != "" || finals.States[0].Civil == 0 {
			t.Errorf("%v, %s, civil time %d", err, finals.Missing, finals.States[0].Civil)
		}
	})
}
