package main_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/quota"
)

// diskOf are the snapshots of a server that does not run.
type diskOf struct{ *raft.FileSnapshotStore }

// Create gives raft's own store the transport that it wants to know.
func (d diskOf) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	_, transport := raft.NewInmemTransport("")
	return d.FileSnapshotStore.Create(version, index, term, c, at, transport)
}

// TestAServerWithAnotherStateIsFound: in the snapshot of one of three servers something was done that nobody asked for, as
// after a fault in its memory. It serves nothing any more, says why and what to do, also after a restart, until its data is
// replaced.
func TestAServerWithAnotherStateIsFound(t *testing.T) {
	t.Parallel()
	flags := trio(t)
	servers := map[string]*process{}
	for i := range flags {
		flags[i].more = append(flags[i].more, snapshots...)
		servers[flags[i].id] = start(t, flags[i].args()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	first, bad := flags[0], flags[2]
	first.applyTree(t)
	for range 5 {
		first.take(t, "one", "two", "three", "four", "five")
	}
	insist(t, first, "level --raise", 0, "level     5")
	insist(t, first, "digests --now", 0, "agrees")
	awaitSnapshot(t, bad)
	servers[bad.id].stop(t)
	store, err := raft.NewFileSnapshotStore(bad.dir, 3, io.Discard)
	if err == nil {
		err = clustertest.PlantInSnapshot(diskOf{store}, quota.Release{ID: "two"})
	}
	if err != nil {
		t.Fatal(err)
	}
	servers[bad.id] = start(t, bad.args()...)

	insist(t, first, "digests --now", 1, "differs")
	awaitQuarantine(t, bad)
	servers[bad.id].stop(t)
	servers[bad.id] = start(t, bad.args()...)
	awaitQuarantine(t, bad)
	if _, metrics := get(t, first.url()+"/metrics"); !strings.Contains(metrics, "quorate_differing_members 1\n") {
		t.Error("the metrics of a healthy server do not tell of the other one")
	}
	first.take(t, "meanwhile")

	servers[bad.id].stop(t)
	if err := os.RemoveAll(bad.dir); err != nil {
		t.Fatal(err)
	}
	servers[bad.id] = serve(t, bad)
	if same := insist(t, first, "digests --now", 0, "agrees").stdout; strings.Count(same, "agrees") != 3 {
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

// awaitQuarantine waits until a server says that it must not serve: the process goes on, so that somebody can read it.
func awaitQuarantine(t *testing.T, f serverFlags) {
	t.Helper()
	var status int
	var body string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		status, body = get(t, f.url()+"/readyz")
		if status == http.StatusServiceUnavailable && strings.Contains(body, "holds another state than the majority") &&
			strings.Contains(body, "join again with an empty one") {
			return
		}
	}
	t.Fatalf("%s answers /readyz with %d %s", f.id, status, body)
}
