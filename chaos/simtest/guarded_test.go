package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/workload"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/verify"
)

// TestGuardedSeeds plays runs on a guarded cluster: accounts work with tokens, valid and revoked, an administrator
// revokes tokens, takes bindings away and disables accounts, and faults happen. What was applied is then compared with
// the audit records. The workloads of the other seeds run beside that, with the token of an administrator.
func TestGuardedSeeds(t *testing.T) {
	total, counts := &examinedCounts{examined: map[string]int{}}, &guardedCounts{}
	t.Cleanup(func() {
		t.Logf("examined in all: %v and %+v", total.examined, counts.all)
		if !t.Failed() && counts.all.isVacuous() {
			t.Errorf("the runs examined too little: %+v", counts.all)
		}
	})
	for i := range verify.Scale(min(*seedCount, 4), *seedCount/4) {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playGuarded(t, seed, total, counts)
		})
	}
}

// guardedCounts sums what all runs examined.
type guardedCounts struct {
	mu  sync.Mutex
	all examinedAccess
}

func (c *guardedCounts) add(e examinedAccess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.grants += e.grants
	c.all.revocations += e.revocations
	c.all.refusals += e.refusals
	c.all.changes += e.changes
	c.all.bindings += e.bindings
}

// playGuarded runs one seed in virtual time.
func playGuarded(t *testing.T, seed uint64, total *examinedCounts, counts *guardedCounts) {
	t.Helper()
	secret := strings.Repeat("s", 43)
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	var recorded history.History
	var finals check.Finals
	injected := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(t, seed, 3, secretFile)
		g := newGuardedRun(w, seed)
		g.guardCluster(t.Context(), secret)
		config := workload.Config{
			Servers: w.nodeURLs(apiPort), HTTP: g.as(g.admin), Seed: seed, Names: []string{"pair", "limits"}, Clients: 1,
			Pause: 60 * time.Millisecond, Timeout: 2 * time.Second, Recorder: history.NewRecorder(nil),
		}
		if err := workload.SetUp(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		n := &faultInjector{simCluster: w, random: rand.New(rand.NewPCG(seed, 3)), injected: injected}
		ctx, cancel := context.WithTimeout(t.Context(), workTime)
		defer cancel()
		done := g.start(ctx)
		n.injectFaults(config)
		<-done
		n.repairCluster()
		n.Leader()
		counts.add(g.checkAccess())
		finals = n.healAndCollect(config)
		recorded = config.Recorder.History()
	})
	verdicts := check.JudgeWith(recorded, finals, check.Options{Pictures: *evidenceFolder})
	total.addVerdicts(verdicts)
	if err := verdicts.Err(); err != nil || t.Failed() {
		t.Errorf("%v\n%s\nfaults: %v\nagain: go test ./chaos/simtest -run TestGuardedSeeds -args -seeds 1 -first %d",
			err, verdicts, injected, seed)
		keepEvidence(t, seed, recorded, finals)
	}
}

// tokenTransport sends a token with each call.
type tokenTransport struct {
	wireTransport

	token string
}

// Do makes a call.
func (e tokenTransport) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+e.token)
	return e.RoundTrip(r)
}

// accountCount is how many accounts work; account i holds at the node of its name.
const accountCount = 3

// guardedTree is the tree in which accounts work.
const guardedTree = "guarded"

// callTimeout bounds each call of the accounts and of the administrator.
const callTimeout = 2 * time.Second

// guardedRun is a guarded cluster with its administrator.
type guardedRun struct {
	*simCluster

	seed  uint64
	admin string

	mu sync.Mutex
	// tokens are all secrets that an account was ever given.
	tokens  [accountCount][]string
	grants  []grantAnswer
	changes []changeAnswer
	// refusals counts calls that were refused for their credential or rights.
	refusals int
}

// grantAnswer is an allocation that an account was told to have.
type grantAnswer struct {
	account int
	token   string
	index   uint64
}

// changeAnswer is a change that a caller was told to be applied.
type changeAnswer struct {
	// action is the command, and object what its record must tell of: the field of a change, or an id of the request.
	action, object string
}

func newGuardedRun(w *simCluster, seed uint64) *guardedRun {
	return &guardedRun{simCluster: w, seed: seed}
}

// as is a transport for calls with a token.
func (g *guardedRun) as(token string) tokenTransport {
	return tokenTransport{wireTransport{g.wires, callerSide}, token}
}

func (g *guardedRun) accessOf(token, url string) quoratev1connect.AccessServiceClient {
	return quoratev1connect.NewAccessServiceClient(g.as(token), url)
}

// guardCluster makes the first administrator, the accounts and their tree, and guards the cluster.
func (g *guardedRun) guardCluster(ctx context.Context, secret string) {
	g.t.Helper()
	url := g.nodeURLs(apiPort)[0]
	g.Eventually("an administrator", func() bool {
		answer, err := g.accessOf("", url).Bootstrap(ctx, &quoratev1.BootstrapRequest{Secret: secret})
		g.admin = answer.GetSecret()
		return err == nil
	})
	_, err := g.accessOf(g.admin, url).SetAccessMode(ctx,
		&quoratev1.SetAccessModeRequest{Mode: quoratev1.AccessMode_ACCESS_MODE_GUARDED})
	for i := range accountCount {
		_, made := g.accessOf(g.admin, url).CreateAccount(ctx,
			&quoratev1.CreateAccountRequest{Account: &quoratev1.Account{Name: accountName(i)}})
		err = errors.Join(err, made)
	}
	_, applied := quoratev1connect.NewTreeServiceClient(g.as(g.admin), url).ApplyTrees(ctx,
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{guardedTreeWith([accountCount]bool{true, true, true})}})
	if err := errors.Join(err, applied); err != nil {
		g.t.Fatal(err)
	}
}

func accountName(i int) string { return fmt.Sprintf("w%d", i) }

// guardedTreeWith is the tree with the accounts that may hold. All of them manage what is below their nodes.
func guardedTreeWith(mayHold [accountCount]bool) *quoratev1.Tree {
	tree := &quoratev1.Tree{Name: guardedTree, Resources: []*quoratev1.Resource{{Name: "slots"}}}
	for i := range accountCount {
		to := []string{"account " + accountName(i)}
		node := &quoratev1.Node{Path: accountName(i), Bindings: []*quoratev1.Binding{{Role: "node-admin", To: to}}}
		if mayHold[i] {
			node.Bindings = append(node.Bindings, &quoratev1.Binding{Role: "holder", To: to})
		}
		tree.Nodes = append(tree.Nodes, node, &quoratev1.Node{Path: accountName(i) + "/own"})
	}
	return tree
}
