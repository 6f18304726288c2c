package main_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// withBoskos are the flags of a server that answers clients of Boskos too, and where.
func withBoskos(t *testing.T) (f serverFlags, url string) {
	t.Helper()
	port := freePorts(t, 1)[0]
	return alone(t, "--boskos-addr", port), "http://" + port
}

// TestBoskosDoor: the door opens with the server, shows its metrics on the API's port, and closes with it.
func TestBoskosDoor(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	server := serve(t, f)
	playSteps(t, f, []step{{"apply --from boskos -f ../../examples/boskos/boskos.yaml", 0, "revision 1"}})
	acquire := url + "/acquire?type=gcp-project&state=dirty&dest=busy&owner="
	if status, body := post(t, acquire+"me", ""); status != http.StatusOK || !strings.Contains(body, `"owner":"me"`) {
		t.Errorf("acquire: %d %s", status, body)
	}
	if _, body := get(t, f.url()+"/metrics"); !strings.Contains(body, `boskos_resources{state="busy",type="gcp-project"} 1`) {
		t.Errorf("the metrics do not say that one is busy:\n%s", body)
	}
	if status, body := get(t, f.url()+"/acquire"); status != http.StatusNotFound {
		t.Errorf("the API's port answers %d %s", status, body)
	}
	for _, mode := range []string{"", "--queue"} {
		args := strings.Fields("bench --boskos " + url + " --type aws-cluster --callers 1,2 --for 200ms " + mode)
		measured := run(t, args...)
		lines := strings.Split(strings.TrimSpace(measured.stdout), "\n")
		if measured.code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "CALLERS") {
			t.Errorf("bench: %+v", measured)
		}
	}
	if refused := run(t, "bench", "--boskos", url); refused.code != 2 {
		t.Errorf("bench without a type: %+v", refused)
	}
	server.stop(t)
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("the door stands open")
	}
}

// TestBoskosDoorIsTaken: a server that cannot have the port says so and leaves no data.
func TestBoskosDoorIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nobody came
	f := alone(t, "--boskos-addr", taken.Addr().String())
	if end := run(t, f.args()...); end.code != 1 || !strings.Contains(end.stderr, "--boskos-addr") {
		t.Errorf("got %+v", end)
	}
	if _, err := os.Stat(f.dir); err == nil {
		t.Error("there is data of a server that never served")
	}
	f = alone(t, "--boskos-addr", "8080")
	if end := run(t, f.args()...); end.code != 2 || !strings.Contains(end.stderr, `boskos-addr is "8080": allowed is host:port`) {
		t.Errorf("got %+v", end)
	}
}

const boskosTenants = `
quorate:
  tenants:
  - {node: ci/nightly, owners: ["*-nightly"], limits: {account: 1}}
  - {node: ci, owners: ["ci-*"], limits: {account: 2}, also: "teams:ci"}
resources:
- {type: account, names: [a1, a2, a3, a4]}
- type: short
  state: dirty
  names: [s1]
  quorate: {ttl: 1s, turns: [{from: dirty, to: free, after: 1s}]}
`

// TestBoskosOnTheLedger: limits of tenants hold and keep nobody else from what is free; leases expire and resources are
// cleaned by the server; what is leased stays when it leaves the file.
func TestBoskosOnTheLedger(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	serve(t, f)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("boskos.yaml", boskosTenants)
	write("less.yaml", strings.Replace(boskosTenants, "[a1, a2, a3, a4]", "[a4]", 1))
	write("none.yaml", strings.ReplaceAll(boskosTenants, "account", "project"))
	write("teams.yaml", "trees: {teams: {resources: {account: {unit: count}}, nodes: {ci: {limits: {account: 1}}}}}")
	playSteps(t, f, []step{
		{"apply -f " + dir + "/teams.yaml", 0, ""}, {"apply --from boskos -f " + dir + "/boskos.yaml", 0, "label boskos.owners"},
	})
	acquire := func(status int, pairs string) string {
		t.Helper()
		got, body := post(t, url+"/acquire?dest=busy&"+pairs, "")
		if got != status {
			t.Errorf("%s: %d %s, want %d", pairs, got, body, status)
		}
		return body
	}
	acquire(200, "type=account&state=free&owner=ci-nightly")
	acquire(404, "type=account&state=free&owner=other-nightly&request_id=1")
	acquire(200, "type=account&state=free&owner=ci-1")
	acquire(404, "type=account&state=free&owner=ci-2") // by the limit in the other tree
	acquire(200, "type=account&state=free&owner=somebody")
	if status, body := post(t, url+"/release?name=a2&dest=free&owner=ci-1", ""); status != 200 {
		t.Errorf("release: %d %s", status, body)
	}
	acquire(200, "type=account&state=free&owner=ci-2")

	clean := func() {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if _, body := get(t, url+"/metric?type=short"); body == `{"type":"short","current":{"free":1},"owner":{"":1}}` {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("no lease expires, or nobody cleans: %s", body)
			}
		}
	}
	clean()
	acquire(200, "type=short&state=free&owner=silent")
	clean()
	playSteps(t, f, []step{
		{"apply --from boskos -f " + dir + "/none.yaml", 3, "resource account of tree boskos cannot be removed"},
		{"apply --from boskos -f " + dir + "/less.yaml", 0, "1 name"},
	})
	if _, body := get(t, url+"/metric?type=account"); !strings.Contains(body, `"current":{"busy":3}`) {
		t.Errorf("somebody has lost an account: %s", body)
	}
	if status, body := post(t, url+"/release?name=a1&dest=free&owner=ci-nightly", ""); status != 200 {
		t.Errorf("release: %d %s", status, body)
	}
	if _, body := get(t, url+"/metric?type=account"); !strings.Contains(body, `"current":{"busy":2}`) {
		t.Errorf("what is not in the file any more does not go: %s", body)
	}
}

// TestDevWithBoskos: one command, and clients have their resources, by every node.
func TestDevWithBoskos(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "boskos.yaml")
	if err := os.WriteFile(file, []byte("resources: [{type: account, names: [a, b, c]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startCommandIn(t, dir, "dev", "--nodes", "3", "--http-addr", "127.0.0.1:0", "--boskos-addr", "127.0.0.1:0", "--boskos-config", file)
	for deadline := time.Now().Add(patience); !strings.Contains(p.stdout.String(), "quorate usage cern"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || !p.running() {
			t.Fatal("dev does not say what to try")
		}
	}
	doors := 0
	for line := range strings.Lines(p.stdout.String()) {
		_, url, found := strings.Cut(strings.TrimSpace(line), "--server-url ")
		if !found {
			continue
		}
		doors++
		if status, body := post(t, fmt.Sprintf("%s/acquire?type=account&state=free&dest=busy&owner=%d", url, doors), ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	if doors != 3 || !strings.Contains(p.stderr.String(), "note: a lease that is not updated for 30m expires") {
		t.Errorf("%d doors\n%s%s", doors, p.stdout.String(), p.stderr.String())
	}
	p.signal(t, syscall.SIGINT)
	if end := p.wait(t); end.code != 0 {
		t.Errorf("got %+v", end)
	}
	for _, wrong := range []string{"--boskos-addr=8080", "--boskos-addr=127.0.0.1:x", "--boskos-addr=127.0.0.1:65535", "--boskos-config=" + dir + "/none", "--boskos-config=e2e_test.go"} {
		if end := run(t, "dev", wrong, "--nodes", "3", "--http-addr", "127.0.0.1:0"); end.code == 0 {
			t.Errorf("dev %s: %+v", wrong, end)
		}
	}
}
