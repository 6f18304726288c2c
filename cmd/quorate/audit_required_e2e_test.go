package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/audit"
)

// TestRequiredAuditOfGrants: while the audit file cannot be written, nothing is granted or changed, and what is held
// is renewed and released.
func TestRequiredAuditOfGrants(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "audit.log")
	f := singleServer(t, "--audit-file", path, "--audit-size", "1", "--audit-required", "all")
	// The file is nearly full, so that it is soon rotated, which fails without its folder. An open file would go on.
	fillAuditFile(t, path, f.id, 1<<20-4000)
	startServer(t, f)
	f.applyTree(t)
	playSteps(t, f, []step{
		{"allocate --id held --at t --amount cores=1 --ttl 1h", 0, "granted"},
		{"allocate --id other --at t --amount cores=1", 0, "granted"},
	})
	hidden := folder + "-hidden"
	if err := os.Rename(folder, hidden); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		end := runCommand(t, "allocate", "--id", "fill-"+strings.Repeat("x", i), "--at", "t", "--amount", "cores=1",
			"--server", f.baseURL(), "--timeout", "3s")
		if end.code != 0 && strings.Contains(end.stderr, "audit-required") {
			break
		}
		if i == 40 {
			t.Fatalf("grants go on while the audit file cannot be written, or fail for another reason: %+v", end)
		}
	}
	playSteps(t, f, []step{
		{"allocate --id refused --at t --amount cores=1 --timeout 3s", 6, "audit-required"},
		{"allocation show refused", 1, "no allocation"},
		{"limit set t cores=999 --timeout 3s", 6, "audit-required"},
		{"renew held", 0, ""},
		{"release other", 0, "released"},
	})
	if err := os.Rename(hidden, folder); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{
		{"allocate --id refused --at t --amount cores=1", 0, "granted"},
		{"audit verify " + path, 0, "missing records      0"},
	})
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(`"detail":"allocation refused"`)) {
		t.Errorf("the intent is not in %s, %v", text, err)
	}
}

func fillAuditFile(t *testing.T, path, id string, size int) {
	t.Helper()
	var text []byte
	var head audit.Head
	for len(text) < size-500 {
		r, line := audit.Encode(audit.Record{
			Chain: audit.Server, Server: id, Number: head.Number + 1, Kind: audit.Call, Outcome: audit.Done,
		}, head.Hash)
		head, text = audit.Head{Number: r.Number, Hash: r.Hash}, append(append(text, line...), '\n')
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
