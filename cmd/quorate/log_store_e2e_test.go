package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func (f serverFlags) heldIDs(t *testing.T) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	page, err := whileUnavailable(t, f.allocationClient().ListAllocations,
		&quoratev1.ListAllocationsRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range page.GetAllocations() {
		held[a.GetId()] = true
	}
	return held
}

func (f serverFlags) wantHeld(t *testing.T, count int) {
	t.Helper()
	held := f.heldIDs(t)
	for i := range count {
		if id := fmt.Sprint("a", i); !held[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
}

func numberedIDs(from, to int) (ids []string) {
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprint("a", i))
	}
	return ids
}

func (f serverFlags) wantLogStore(t *testing.T, kind string) {
	t.Helper()
	end := runCommand(t, "status", "--server", f.baseURL(), "-o", "json")
	if !strings.Contains(strings.ReplaceAll(end.stdout, " ", ""), `"logStore":"`+kind+`"`) {
		t.Errorf("%s does not report the log store %s: %s", f.id, kind, end.stdout)
	}
}

// TestServersWithDifferentLogStores runs a cluster in which two nodes have segment files and one has a bbolt file.
// Every node is killed once; nothing that was acknowledged is lost.
func TestServersWithDifferentLogStores(t *testing.T) {
	t.Parallel()
	flags := threeServers(t)
	servers := map[string]*process{}
	for i, kind := range []string{"wal", "bolt", "wal"} {
		flags[i].more = append([]string{"--log-store", kind}, flags[i].more...)
		servers[flags[i].id] = startProcess(t, flags[i].commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	flags[0].applyTree(t)
	count := 0
	for i, f := range flags {
		other := flags[(i+1)%len(flags)]
		other.allocateEach(t, numberedIDs(count, count+10)...)
		count += 10
		if err := servers[f.id].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		servers[f.id].awaitEnd(t)
		awaitCondition(t, "the other two have no leader", func() bool {
			_, err := other.allocationClient().Allocate(t.Context(), oneClaim(fmt.Sprint("a", count), 1))
			return err == nil
		})
		count++
		servers[f.id] = startServer(t, f)
		f.wantHeld(t, count)
	}
	flags[0].wantLogStore(t, "wal")
	flags[1].wantLogStore(t, "bolt")
}

// TestTheLogIsMigrated converts the folder of a server, which keeps its log store until then.
func TestTheLogIsMigrated(t *testing.T) {
	t.Parallel()
	f := singleServer(t, "--log-store", "bolt")
	server := startServer(t, f)
	f.applyTree(t)
	f.allocateEach(t, numberedIDs(0, 40)...)
	if end := runCommand(t, "log", "convert", "--data-dir", f.dir, "--log-store", "wal"); end.code != 1 ||
		!strings.Contains(end.stderr, "in use by another server") {
		t.Errorf("while the server runs: %+v", end)
	}
	server.stopCleanly(t)

	f.more = nil
	server = startServer(t, f)
	f.wantLogStore(t, "bolt")
	server.stopCleanly(t)

	f.more = []string{"--log-store", "wal"}
	refused := startProcess(t, f.commandLine()...).awaitEnd(t)
	_, command, found := strings.Cut(strings.TrimSpace(refused.stderr), "convert the folder first: quorate ")
	if refused.code != 1 || !found {
		t.Fatalf("a server with another log store: %+v", refused)
	}
	if end := runCommand(t, strings.Fields(command)...); end.code != 0 ||
		!strings.Contains(end.stdout, "copied and compared") {
		t.Fatalf("%s: %+v", command, end)
	}
	server = startServer(t, f)
	f.wantLogStore(t, "wal")
	f.wantHeld(t, 40)
	f.allocateEach(t, numberedIDs(40, 45)...)
	server.stopCleanly(t)

	if end := runCommand(t, "log", "convert", "--data-dir", f.dir, "--log-store", "bolt", "-o", "json"); end.code != 0 ||
		!strings.Contains(end.stdout, `"changed": true`) {
		t.Fatalf("back to bolt: %+v", end)
	}
	f.more = nil
	startServer(t, f)
	f.wantLogStore(t, "bolt")
	f.wantHeld(t, 45)
}

// TestAKilledMigrationLosesNothing kills migrations, in both directions, after random times.
func TestAKilledMigrationLosesNothing(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	f.applyTree(t)
	f.allocateEach(t, numberedIDs(0, 60)...)
	server.stopCleanly(t)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := 0
	for round := range 12 {
		to := []string{"wal", "bolt"}[round/2%2]
		p := startProcess(t, "log", "convert", "--data-dir", f.dir, "--log-store", to)
		after := time.Duration(random.IntN(120)) * time.Millisecond
		select {
		case <-p.ended:
		case <-time.After(after):
			killed++
			_ = p.Process.Kill() // it may have ended
		}
		if end := p.awaitEnd(t); end.code > 0 {
			t.Fatalf("round %d: %+v", round, end)
		}
		if round%2 == 1 { // otherwise the next migration finds what the killed one left
			server = startServer(t, f)
			f.wantHeld(t, 60)
			server.stopCleanly(t)
		}
	}
	t.Logf("%d of 12 migrations were killed", killed)
	if killed == 0 {
		t.Error("no migration was killed")
	}
	for _, to := range []string{"wal", "bolt", "wal"} {
		if end := runCommand(t, "log", "convert", "--data-dir", f.dir, "--log-store", to); end.code != 0 {
			t.Fatalf("to %s: %+v", to, end)
		}
	}
	startServer(t, f)
	f.wantHeld(t, 60)
}

// TestADamagedEndOfTheSegmentsIsNotDropped changes the last entry in the segments of a stopped and of a killed server.
// That looks like an interrupted write, but the entry was acknowledged.
func TestADamagedEndOfTheSegmentsIsNotDropped(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(t *testing.T, p *process){
		"stopped": func(t *testing.T, p *process) { t.Helper(); p.stopCleanly(t) },
		"killed": func(t *testing.T, p *process) {
			t.Helper()
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.awaitEnd(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := singleServer(t, "--log-store", "wal")
			server := startServer(t, f)
			f.applyTree(t)
			f.allocateEach(t, "before", "needle-last")
			stop(t, server)
			segments, err := filepath.Glob(filepath.Join(f.dir, "wal", "*.wal"))
			if err != nil || len(segments) != 1 {
				t.Fatalf("the segments are %v, %v", segments, err)
			}
			before, err := os.ReadFile(segments[0])
			if err != nil {
				t.Fatal(err)
			}
			replaceInFile(t, segments[0], "needle-last", "noodle-last")
			end := startProcess(t, f.commandLine()...).awaitEnd(t)
			for _, says := range []string{filepath.Base(segments[0]), "was acknowledged", "join again"} {
				if end.code != 1 || !strings.Contains(end.stderr, says) {
					t.Errorf("exit code %d, and the message does not say %q: %s", end.code, says, end.stderr)
				}
			}
			if err := os.WriteFile(segments[0], before, 0o600); err != nil {
				t.Fatal(err)
			}
			startServer(t, f)
			if !f.heldIDs(t)["needle-last"] {
				t.Error("the repaired file has lost the last allocation")
			}
		})
	}
}
