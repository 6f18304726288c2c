package main_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/boltstore"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

type diskOf struct{ *raft.FileSnapshotStore }

// Create passes raft's file store the transport that it requires.
func (d diskOf) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64,
	_ raft.Transport,
) (raft.SnapshotSink, error) {
	_, transport := raft.NewInmemTransport("")
	return d.FileSnapshotStore.Create(version, index, term, c, at, transport)
}

// TestDivergedServerIsQuarantined changes a record in the snapshot of one of three servers, as a memory fault could.
// The server must stop serving and report why and what to do, also after a restart, until its data is replaced.
func TestDivergedServerIsQuarantined(t *testing.T) {
	t.Parallel()
	flags := threeServers(t)
	servers := map[string]*process{}
	for i := range flags {
		flags[i].more = append(flags[i].more, snapshots...)
		servers[flags[i].id] = startProcess(t, flags[i].commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	first, bad := flags[0], flags[2]
	first.applyTree(t)
	for range 5 {
		first.allocateEach(t, "one", "two", "three", "four", "five")
	}
	runUntil(t, first, "digest list --now", 0, "agrees")
	awaitSnapshot(t, bad)
	servers[bad.id].stopCleanly(t)
	store, err := raft.NewFileSnapshotStore(bad.dir, 3, io.Discard)
	if err == nil {
		err = clustertest.InjectIntoSnapshot(diskOf{store}, quota.Release{ID: "two"})
	}
	if err != nil {
		t.Fatal(err)
	}
	servers[bad.id] = startProcess(t, bad.commandLine()...)

	runUntil(t, first, "digest list --now", 1, "differs")
	awaitQuarantine(t, bad)
	servers[bad.id].stopCleanly(t)
	servers[bad.id] = startProcess(t, bad.commandLine()...)
	awaitQuarantine(t, bad)
	servers[first.id].stopCleanly(t) // it forgets the digests
	servers[first.id] = startServer(t, first)
	awaitCondition(t, "the metrics of each healthy server tell of the other one", func() bool {
		return !slices.ContainsFunc(flags[:2], func(f serverFlags) bool {
			_, metrics := httpGet(t, f.baseURL()+"/metrics")
			return !strings.Contains(metrics, `quorate_differing_members{cluster="quorate"} 1`+"\n")
		})
	})
	first.allocateEach(t, "meanwhile")

	servers[bad.id].stopCleanly(t)
	refuseRecovery(t, bad)
	if end := runCommand(t, "quarantine", "lift", "--discard", "--data-dir", bad.dir); end.code != 0 ||
		!strings.Contains(end.stdout, "set-aside-1") {
		t.Fatalf("start-over: %+v", end)
	}
	servers[bad.id] = startServer(t, bad)
	if same := runUntil(t, first, "digest list --now", 0, "agrees").stdout; strings.Count(same, "agrees") != 3 {
		t.Errorf("with new data they hold\n%s", same)
	}
}

func awaitSnapshot(t *testing.T, f serverFlags) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if len(snapshotFiles(t, f.dir, "state.bin")) > 0 {
			return
		}
	}
	t.Fatalf("%s writes no snapshot", f.id)
}

// awaitQuarantine waits until a server reports that it must not serve. The process keeps running, so that an operator
// can read the report.
func awaitQuarantine(t *testing.T, f serverFlags) {
	t.Helper()
	var status int
	var body string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		status, body = httpGet(t, f.baseURL()+"/readyz")
		if status == http.StatusServiceUnavailable && strings.Contains(body, "holds another state than the majority") &&
			strings.Contains(body, "join again with an empty one") {
			return
		}
	}
	t.Fatalf("%s answers /readyz with %d %s", f.id, status, body)
}

// refuseRecovery checks that a quarantined node can neither be recovered nor released from quarantine without proof.
func refuseRecovery(t *testing.T, bad serverFlags) {
	t.Helper()
	folder := t.TempDir()
	peers, own := filepath.Join(folder, "peers.yaml"), filepath.Join(folder, "own.json")
	if err := os.WriteFile(peers, fmt.Appendf(nil, "peers: [{id: %s, address: %q}]\n", bad.id, bad.raft),
		0o600); err != nil {
		t.Fatal(err)
	}
	end := runCommand(t, "cluster", "recover", "--data-dir", bad.dir, "--peers", peers)
	if end.code == 0 || strings.Contains(end.stdout, "Done") || !strings.Contains(end.stderr, "is in quarantine") ||
		!strings.Contains(end.stderr, "quorate quarantine lift --discard --data-dir "+bad.dir) {
		t.Errorf("cluster recover of a node in quarantine: %+v", end)
	}
	end = runCommand(t, "digest", "list", "--data-dir", bad.dir, "-o", "json")
	if err := os.WriteFile(own, []byte(end.stdout), 0o600); err != nil || end.code != 0 {
		t.Fatalf("digests: %+v, %v", end, err)
	}
	if end := runCommand(t, "quarantine", "lift", "--data-dir", bad.dir, "--digests", own); end.code == 0 ||
		!strings.Contains(end.stderr, "it is not proved") {
		t.Errorf("lift without proof: %+v", end)
	}
}

// TestAQuarantineIsLiftedByProof: all three servers are in quarantine although their states are equal, as forged gossip
// could cause before 0.6. No data has to be deleted: a server is released once its folder holds the state of a
// majority.
func TestAQuarantineIsLiftedByProof(t *testing.T) {
	verify.Only(t) // TestDivergedServerIsQuarantined covers quarantine in short mode
	t.Parallel()
	flags := threeServers(t)
	servers := map[string]*process{}
	for _, f := range flags {
		servers[f.id] = startProcess(t, f.commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	flags[0].applyTree(t)
	flags[0].allocateEach(t, "a", "b")
	if same := runUntil(t, flags[0], "digest list --now", 0, "agrees").stdout; strings.Count(same, "agrees") != 3 {
		t.Fatalf("they hold\n%s", same)
	}
	files := map[string]string{}
	for _, f := range flags {
		servers[f.id].stopCleanly(t)
	}
	for _, f := range flags {
		markDiverged(t, f)
		servers[f.id] = startProcess(t, f.commandLine()...)
	}
	for _, f := range flags {
		awaitQuarantine(t, f)
		servers[f.id].stopCleanly(t)
		end := runCommand(t, "digest", "list", "--data-dir", f.dir, "-o", "json")
		files[f.id] = filepath.Join(t.TempDir(), f.id+".json")
		if err := os.WriteFile(files[f.id], []byte(end.stdout), 0o600); err != nil || end.code != 0 {
			t.Fatalf("digests of %s: %+v, %v", f.id, end, err)
		}
	}
	for i, f := range flags {
		other := flags[(i+1)%len(flags)]
		end := runCommand(t, "quarantine", "lift", "--data-dir", f.dir, "--digests", files[other.id])
		if end.code != 0 || !strings.Contains(end.stdout, "may serve again") {
			t.Errorf("lift of %s: %+v", f.id, end)
		}
		servers[f.id] = startProcess(t, f.commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	if used := flags[0].usedCores(t); used != 2 {
		t.Errorf("%d are used, want 2", used)
	}
	flags[0].allocateEach(t, "c")
}

func markDiverged(t *testing.T, f serverFlags) {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(f.dir, "raft.db"), 0)
	if err == nil {
		err = errors.Join(
			store.Set([]byte("quorate.diverged"),
				[]byte("node "+f.id+" holds another state than the majority: at checkpoint 2 its "+
					"digest is 1 and theirs is 2; let it join again with an empty one")), store.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
