package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
)

// currentFence allocates under an id, or repeats the request.
func (f serverFlags) currentFence(t *testing.T, id string) uint64 {
	t.Helper()
	answer, err := whileUnavailable(t, f.allocationClient().Allocate, oneClaim(id, 1))
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetAllocation().GetFence()
}

// TestABackupMovesIntoANewCluster saves a backup, inspects it and restores it into a new cluster. Fences continue to
// increase.
func TestABackupMovesIntoANewCluster(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.backup")
	lost := singleServer(t)
	server := startServer(t, lost)
	lost.applyTree(t)
	lost.allocateEach(t, "a", "b")
	if end := runCommand(t, "snapshot", "create", file, "--server", lost.baseURL()); end.code != 0 ||
		!strings.Contains(end.stdout, "holds the state at index") {
		t.Fatalf("save: %+v", end)
	}
	last := lost.currentFence(t, "after")
	server.stopCleanly(t)

	if end := runCommand(t, "snapshot", "show", file); end.code != 0 ||
		!strings.Contains(end.stdout, "2 held, 0 waiting, 0 ended") {
		t.Errorf("inspect: %+v", end)
	}
	f := singleServer(t)
	server = startServer(t, f)
	for name, damage := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"flipped": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"foreign": func([]byte) []byte { return []byte("PK\x03\x04 is not a backup") },
	} {
		bad := filepath.Join(t.TempDir(), name)
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(bad, damage(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"show", bad}, {"restore", bad, "--yes", "--server", f.baseURL()}} {
			if end := runCommand(t, append([]string{"snapshot"}, command...)...); end.code != 2 ||
				!strings.Contains(end.stderr, bad) {
				t.Errorf("%s of a %s file: %+v", command[0], name, end)
			}
		}
	}
	if end := runCommand(t, "snapshot", "restore", file, "--server", f.baseURL()); end.code != 2 ||
		!strings.Contains(end.stderr, "--yes") {
		t.Errorf("restore without a confirmation: %+v", end)
	}
	if end := runCommand(t, "snapshot", "restore", file, "--yes", "--server",
		f.baseURL()); end.code != 0 {
		t.Fatalf("restore: %+v", end)
	}
	if used := f.usedCores(t); used != 2 {
		t.Errorf("%d are used after the restore, want 2", used)
	}
	if next := f.currentFence(t, "next"); next <= last {
		t.Errorf("the new cluster gives token %d, the lost one gave %d", next, last)
	}
	server.stopCleanly(t)
	server = startServer(t, f)
	if used := f.usedCores(t); used != 3 {
		t.Errorf("%d are used after a restart, want 3", used)
	}
	server.stopCleanly(t)
}

// TestPeriodicBackups: a server writes backups periodically, and they are valid.
func TestPeriodicBackups(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	f := singleServer(t, "--backup-dir", dir, "--backup-every", "1s", "--backup-keep", "2")
	server := startServer(t, f)
	f.applyTree(t)
	names := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "quorate-*.backup"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := ""
	for i, deadline := 0, time.Now().Add(patience); first == "" || slices.Contains(names(), first); i++ {
		if time.Now().After(deadline) {
			t.Fatalf("the first backup is not replaced: %v", names())
		}
		f.allocateEach(t, fmt.Sprint("a", i))
		if found := names(); first == "" && len(found) > 0 {
			first = found[0]
		}
		time.Sleep(200 * time.Millisecond)
	}
	server.stopCleanly(t)
	for _, name := range names() {
		if end := runCommand(t, "snapshot", "show", name); end.code != 0 {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// TestTheLossOfTheMajority: two of three servers are lost for good. The third is recovered with a new configuration and
// its data, and new servers join it.
func TestTheLossOfTheMajority(t *testing.T) {
	t.Parallel()
	list := threeServers(t)
	var servers []*process
	for _, f := range list {
		servers = append(servers, startProcess(t, f.commandLine()...))
	}
	for i, f := range list {
		awaitReady(t, servers[i], f)
	}
	list[0].applyTree(t)
	list[0].allocateEach(t, "a", "b")
	last := list[0].currentFence(t, "c")
	// The remaining server has received all entries.
	if used := list[2].usedCores(t); used != 3 {
		t.Fatalf("%d are used, want 3", used)
	}
	peers := filepath.Join(t.TempDir(), "peers.yaml")
	write := func(text string) {
		if err := os.WriteFile(peers, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stay := list[2]
	if end := runCommand(t, "cluster", "recover", "--data-dir", stay.dir, "--peers",
		filepath.Join(t.TempDir(), "nowhere")); end.code != 2 || !strings.Contains(end.stderr, "peers: open ") {
		t.Errorf("cluster recover with no such file: %+v", end)
	}
	write(fmt.Sprintf("peers:\n  - {id: n3, address: %q}\n", stay.raft))
	recover := []string{"cluster", "recover", "--data-dir", stay.dir, "--peers", peers}
	if end := runCommand(t, recover...); end.code != 1 || !strings.Contains(end.stderr, "in use by another server") {
		t.Errorf("cluster recover beside a server: %+v", end)
	}
	for _, p := range servers {
		_ = p.Process.Kill()
		<-p.ended
	}
	for text, says := range map[string]string{
		"peers: []\n": "peers is empty",
		fmt.Sprintf("peers:\n  - {id: n9, address: %q}\n", stay.raft):               `no id "n3"`,
		fmt.Sprintf("peers:\n  - {id: n3, address: %q, voter: false}\n", stay.raft): "voter",
		"peers:\n  - {id: n3, address: nowhere}\n":                                  "peers[0].address",
		fmt.Sprintf("peers:\n  - {id: n3, street: %q}\n", stay.raft):                "peers.yaml:2",
	} {
		write(text)
		if end := runCommand(t, recover...); end.code == 0 || !strings.Contains(end.stderr, says) {
			t.Errorf("cluster recover with %q: %+v; want %q", text, end, says)
		}
	}
	write(fmt.Sprintf("{\"peers\": [{\"id\": \"n3\", \"address\": %q, \"voter\": true}]}\n", stay.raft))
	if end := runCommand(t, append(recover, "--dry-run")...); end.code != 0 ||
		!strings.Contains(end.stdout, "3 allocations held") || !strings.Contains(end.stdout, "Nothing was changed") {
		t.Errorf("dry run: %+v", end)
	}
	if end := runCommand(t, recover...); end.code != 0 || !strings.Contains(end.stdout, "Done.") {
		t.Fatalf("recover: %+v", end)
	}
	server := startServer(t, stay)
	if used := stay.usedCores(t); used != 3 {
		t.Errorf("%d are used after the recovery, want 3", used)
	}
	if next := stay.currentFence(t, "next"); next <= last {
		t.Errorf("after the recovery token %d is given, before it %d", next, last)
	}
	members, err := adminv1connect.NewClusterServiceClient(fresh, stay.baseURL()).ListMembers(t.Context(),
		&adminv1.ListMembersRequest{})
	if err != nil || len(members.GetMembers()) != 1 || members.GetVoters() != 1 {
		t.Errorf("the members are %v, %v", members, err)
	}
	server.stopCleanly(t)
}
