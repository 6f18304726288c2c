package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// withBoskos returns the flags of a server with front ends, and the address for Boskos clients.
func withBoskos(t *testing.T) (f serverFlags, url string) {
	t.Helper()
	port := servertest.FreePorts(t, 1)[0]
	return singleServer(t, "--front-ends", "yunikorn,boskos="+port), "http://" + port
}

// TestBoskosAddress: the address for Boskos clients opens with the server, shows its metrics on the port of the API,
// and closes with it.
func TestBoskosAddress(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	server := startServer(t, f)
	playSteps(t, f, []step{{"apply --from boskos -f ../../examples/boskos/boskos.yaml", 0, "revision 1"}})
	acquire := url + "/acquire?type=gcp-project&state=dirty&dest=busy&owner="
	if status, body := httpPost(t, acquire+"me", ""); status != http.StatusOK ||
		!strings.Contains(body, `"owner":"me"`) {
		t.Errorf("acquire: %d %s", status, body)
	}
	if _, body := httpGet(t, f.baseURL()+"/metrics"); !strings.Contains(body,
		`boskos_resources{cluster="quorate",state="busy",type="gcp-project"} 1`) {
		t.Errorf("the metrics do not say that one is busy:\n%s", body)
	}
	if status, body := httpPost(t, f.baseURL()+"/acquire", ""); status != http.StatusNotFound ||
		!strings.Contains(body, "front-ends") {
		t.Errorf("the API's port answers %d %s", status, body)
	}
	for _, mode := range []string{"", "--queue"} {
		args := strings.Fields("cluster bench --boskos " + url + " --boskos-type aws-cluster --callers 1,2 " +
			"--duration 200ms " + mode)
		measured := runCommand(t, args...)
		lines := strings.Split(strings.TrimSpace(measured.stdout), "\n")
		if measured.code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "CALLERS") {
			t.Errorf("bench: %+v", measured)
		}
	}
	if refused := runCommand(t, "cluster", "bench", "--boskos", url); refused.code != 2 {
		t.Errorf("cluster bench without a type: %+v", refused)
	}
	server.stopCleanly(t)
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("the address for Boskos clients is still open")
	}
}

// TestBoskosIDsAreItsOwn: an id in the namespace of the front end and the same id in that of a caller are two
// allocations, and the end of one leaves the other as it is.
func TestBoskosIDsAreItsOwn(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply --from boskos -f ../../examples/boskos/boskos.yaml", 0, "revision 1"},
		{"apply -f " + manifestFile(t, "trees: {teams: {resources: {cores: {unit: count}}}}"), 0, "applied"},
	})
	call := func(path string) {
		t.Helper()
		if status, body := httpPost(t, url+path, ""); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
	}
	const acquire = "/acquire?type=gcp-project&state=dirty&dest=busy&owner=me&request_id=r1"
	call(acquire)
	first := onlyIDIn(t, f, "frontend/boskos")
	second := strings.TrimSuffix(first, "/0") + "/1" // that of the next allocation of the request
	playSteps(t, f, []step{
		{"allocate --at teams --amount cores=1 --id " + first, 0, "granted"},
		{"allocate --at teams --amount cores=1 --id " + second, 0, "granted"},
	})
	call("/release?name=project-1&dest=dirty&owner=me")
	playSteps(t, f, []step{
		{"allocation show " + first, 0, "held"},
		{"allocation show --namespace frontend/boskos " + first, 0, "released"},
	})
	call(acquire)
	playSteps(t, f, []step{
		{"allocation show --namespace frontend/boskos " + second, 0, "held"},
		{"release " + second, 0, "released"},
		{"allocation show --namespace frontend/boskos " + second, 0, "held"},
	})
}

// onlyIDIn returns the id of the only allocation of a namespace.
func onlyIDIn(t *testing.T, f serverFlags, namespace string) string {
	t.Helper()
	end := runCommand(t, "allocation", "list", "--namespace", namespace, "-o", "json", "--server", f.baseURL())
	var list struct{ Allocations []struct{ ID string } }
	if err := json.Unmarshal([]byte(end.stdout), &list); err != nil || len(list.Allocations) != 1 {
		t.Fatalf("%s has %+v, %v", namespace, end, err)
	}
	return list.Allocations[0].ID
}

// TestBoskosAddressIsTaken: a server that cannot open the port reports it and leaves no data.
func TestBoskosAddressIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // it has no connections
	f := singleServer(t, "--front-ends", "boskos="+taken.Addr().String())
	if end := runCommand(t, f.commandLine()...); end.code != 1 || !strings.Contains(end.stderr, "--front-ends boskos=") {
		t.Errorf("got %+v", end)
	}
	if _, err := os.Stat(f.dir); err == nil {
		t.Error("there is data of a server that never served")
	}
	f = singleServer(t, "--front-ends", "boskos=8080")
	if end := runCommand(t, f.commandLine()...); end.code != 2 ||
		!strings.Contains(end.stderr, `front-ends has "boskos=8080": allowed is boskos=HOST:PORT`) {
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
  quorate: {ttl: 1s, turns: [{state: dirty, new-state: free, after: 1s}]}
`

// TestBoskosOnTheLedger: tenant limits are enforced and do not delay other tenants; leases expire and the server cleans
// their resources; a leased resource that is removed from the file stays until it is returned.
func TestBoskosOnTheLedger(t *testing.T) {
	t.Parallel()
	f, url := withBoskos(t)
	startServer(t, f)
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
		{"apply -f " + dir + "/teams.yaml", 0, ""},
		{"apply --from boskos -f " + dir + "/boskos.yaml", 0, "label boskos.owners"},
	})
	acquire := func(status int, pairs string) string {
		t.Helper()
		got, body := httpPost(t, url+"/acquire?dest=busy&"+pairs, "")
		if got != status {
			t.Errorf("%s: %d %s, want %d", pairs, got, body, status)
		}
		return body
	}
	acquire(200, "type=account&state=free&owner=ci-nightly")
	acquire(404, "type=account&state=free&owner=other-nightly&request_id=1")
	acquire(200, "type=account&state=free&owner=ci-1")
	acquire(404, "type=account&state=free&owner=ci-2") // by the limit in the other tree
	acquire(200, "type=account&state=free&owner=someone")
	if status, body := httpPost(t, url+"/release?name=a2&dest=free&owner=ci-1", ""); status != 200 {
		t.Errorf("release: %d %s", status, body)
	}
	acquire(200, "type=account&state=free&owner=ci-2")

	clean := func() {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if _, body := httpGet(
				t, url+"/metric?type=short"); body == `{"type":"short","current":{"free":1},"owner":{"":1}}` {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("no lease expires, or the cleaner does not run: %s", body)
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
	if _, body := httpGet(t, url+"/metric?type=account"); !strings.Contains(body, `"current":{"busy":3}`) {
		t.Errorf("a holder has lost an account: %s", body)
	}
	if status, body := httpPost(t, url+"/release?name=a1&dest=free&owner=ci-nightly", ""); status != 200 {
		t.Errorf("release: %d %s", status, body)
	}
	if _, body := httpGet(t, url+"/metric?type=account"); !strings.Contains(body, `"current":{"busy":2}`) {
		t.Errorf("what is not in the file any more does not go: %s", body)
	}
}

// TestDevWithBoskos: "quorate server dev" serves Boskos clients on every node.
func TestDevWithBoskos(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "boskos.yaml")
	if err := os.WriteFile(file, []byte("resources: [{type: account, names: [a, b, c]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startCommandIn(t, dir, "server", "dev", "--members", "3", "--http-addr", "127.0.0.1:0", "--front-ends",
		"boskos=127.0.0.1:0", "--boskos-config", file)
	for deadline := time.Now().Add(patience); !strings.Contains(p.stdout.String(),
		"quorate usage cern"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || !p.isRunning() {
			t.Fatal("server dev does not say what to try")
		}
	}
	addresses := 0
	for line := range strings.Lines(p.stdout.String()) {
		_, url, found := strings.Cut(strings.TrimSpace(line), "--server-url ")
		if !found {
			continue
		}
		addresses++
		if status, body := httpPost(
			t, fmt.Sprintf("%s/acquire?type=account&state=free&dest=busy&owner=%d", url, addresses),
			""); status != http.StatusOK {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	if addresses != 3 || !strings.Contains(p.stderr.String(), "note: a lease that is not updated for 30m expires") {
		t.Errorf("%d addresses\n%s%s", addresses, p.stdout.String(), p.stderr.String())
	}
	p.sendSignal(t, syscall.SIGINT)
	if end := p.awaitEnd(t); end.code != 0 {
		t.Errorf("got %+v", end)
	}
	for _, wrong := range []string{
		"--front-ends=boskos=8080", "--front-ends=boskos=127.0.0.1:x", "--front-ends=boskos=127.0.0.1:65535",
		"--front-ends=boskos", "--front-ends=slurm",
		"--boskos-config=" + dir + "/none", "--boskos-config=e2e_test.go",
	} {
		if end := runCommand(t, "server", "dev", wrong, "--members", "3", "--http-addr", "127.0.0.1:0"); end.code == 0 {
			t.Errorf("server dev %s: %+v", wrong, end)
		}
	}
}
