package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/workload"
	"github.com/quorate/quorate/internal/verify"
)

// TestGuardedSeeds plays runs on a guarded cluster: accounts work with tokens, valid and revoked, an administrator
// revokes tokens, takes bindings away and disables accounts, and faults happen. What was applied is then compared with
// the audit records. The workloads of the other seeds run beside that, with the token of the administrator.
func TestGuardedSeeds(t *testing.T) {
	total := &caseCounts{cases: map[string]int{}}
	t.Cleanup(func() {
		t.Logf("examined in all: %v", total.cases)
		for _, kind := range guarded.Examined() {
			if !t.Failed() && total.cases[kind] == 0 {
				t.Errorf("the runs examined no %s", kind)
			}
		}
	})
	for i := range verify.Scale(min(*seedCount, 4), *seedCount/4) {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playGuarded(t, seed, total)
		})
	}
}

type caseCounts struct {
	mu    sync.Mutex
	cases map[string]int
}

func (c *caseCounts) add(all check.Verdicts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range all {
		for kind, n := range v.Counts {
			c.cases[kind] += n
		}
	}
}

func playGuarded(t *testing.T, seed uint64, total *caseCounts) {
	t.Helper()
	secret := strings.Repeat("s", 43)
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	var recorded history.History
	var finals check.Finals
	var evidence guarded.Evidence
	injected := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(t, seed, 3, secretFile)
		accounts := w.guardCluster(seed, secret)
		config := workload.Config{
			Servers: w.nodeURLs(apiPort), HTTP: accounts.AdminHTTP(), Seed: seed, Names: []string{"pair", "limits"},
			Clients: 1, Pause: 60 * time.Millisecond, Timeout: 2 * time.Second, Recorder: history.NewRecorder(nil),
		}
		if err := workload.SetUp(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		n := &faultInjector{simCluster: w, random: rand.New(rand.NewPCG(seed, 3)), injected: injected}
		ctx, cancel := context.WithTimeout(t.Context(), workTime)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			accounts.Run(ctx)
		}()
		n.injectFaults(config)
		<-done
		evidence = n.collectAccess(accounts)
		finals = n.healAndCollect(config)
		recorded = config.Recorder.History()
	})
	verdicts := check.JudgeWith(recorded, finals, check.Options{Pictures: *evidenceFolder})
	access := guarded.Judge(evidence, recorded)
	total.add(access)
	if err := append(verdicts, access...).Err(); err != nil || t.Failed() {
		t.Errorf("%v\n%s%s\nfaults: %v\nagain: go test -C chaos ./simtest -run TestGuardedSeeds -args -seeds 1 -first %d",
			err, verdicts, access, injected, seed)
		keepEvidence(t, seed, recorded, finals)
	}
}

func (w *simCluster) guardCluster(seed uint64, secret string) *guarded.Workload {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	accounts, err := guarded.SetUp(ctx, guarded.Config{
		Servers: w.nodeURLs(apiPort), HTTP: wireTransport{w.wires, callerSide}, Seed: seed,
		Pause: 30 * time.Millisecond, Timeout: 2 * time.Second,
	}, secret)
	if err != nil {
		w.t.Fatal(err)
	}
	return accounts
}

// collectAccess heals the cluster and collects what its members show of access.
func (n *faultInjector) collectAccess(accounts *guarded.Workload) guarded.Evidence {
	n.t.Helper()
	n.repairCluster()
	n.Leader()
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Minute)
	defer cancel()
	return accounts.Collect(ctx)
}
