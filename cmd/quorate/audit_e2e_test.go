package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/audit"
)

func auditFile(f serverFlags) string { return f.dir + "-audit.log" }

// auditLines are the records of a chain in a file, by number from 1 on.
func auditLines(t *testing.T, path string, chain audit.ChainName) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		r, err := audit.Decode([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatalf("%s: %v in %s", path, err, line)
		}
		if r.Chain == chain {
			list = append(list, line)
		}
	}
	return list
}

// TestAuditFiles: a change is in the files of all servers under one number and hash, refusals in that of the server
// that was called; nothing is written twice, no token is anywhere, and a file that was changed is found.
func TestAuditFiles(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t, func(f serverFlags) []string {
		return []string{"--audit-file", auditFile(f)}
	})
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	playSteps(t, list[2], []step{
		{as("anna", "limit set cern:atlas/physics cores=39 --reason for-the-audit"), 0, "applied"},
		{as("peter", "limit set cern:atlas/physics cores=38"), 4, "limits.set"},
		{as("hans", "allocate --id a --at cern:atlas/physics --amount cores=3"), 0, "granted"},
		{"account create eve", 4, ""},
	})
	changed := awaitAudited(t, list, "for-the-audit")
	for _, text := range []string{
		`"user":"account/anna"`, `"action":"SetLimits"`, `"field":"limit cores","before":"40","after":"39"`,
	} {
		if !strings.Contains(changed, text) {
			t.Errorf("the record lacks %s: %s", text, changed)
		}
	}
	playSteps(t, list[1], []step{
		{as("admin", "audit list --at cern:atlas --since 1h"), 0, "for-the-audit"},
		{as("admin", "audit list --by account/anna"), 0, "cern:atlas/physics limit cores: 40 -> 39"},
		{as("anna", "audit list"), 4, "audit.read"},
		{"audit list " + auditFile(list[1]) + " --action SetMode", 0, "guarded"},
		{"audit verify " + auditFile(list[0]), 0, "missing records"},
	})
	playSteps(t, list[2], []step{{as("admin", "audit list --denied"), 0, "account/peter"}})

	processes[1].stopCleanly(t)
	playSteps(t, list[0], []step{{as("anna", "limit set cern:atlas/physics cores=37 --reason while-it-was-down"), 0, ""}})
	processes[1] = startProcess(t, list[1].commandLine()...)
	awaitReady(t, processes[1], list[1])
	awaitAudited(t, list, "while-it-was-down")
	for _, p := range processes {
		p.stopCleanly(t)
	}
	first := auditLines(t, auditFile(list[0]), audit.Ledger)
	for _, f := range list {
		if got := auditLines(t, auditFile(f), audit.Ledger); strings.Join(got, "") != strings.Join(first, "") {
			t.Errorf("%s has %d records of the ledger, %s has %d, or they differ", f.id, len(got), list[0].id, len(first))
		}
		playSteps(t, f, []step{{"audit verify " + auditFile(f), 0, "missing records      0"}})
		hasNoTokens(t, auditFile(f), tokens)
	}
	refused := strings.Join(auditLines(t, auditFile(list[2]), audit.Server), "")
	for _, text := range []string{`"user":"account/peter"`, `"actor_kind":"anonymous"`} {
		if !strings.Contains(refused, text) {
			t.Errorf("the records of %s lack %s:\n%s", list[2].id, text, refused)
		}
	}
	findsTampering(t, list[0])
}

// TestAuditOfHoldsAndReads: with the classes, the files of all servers say who was granted what and who ended it, each
// once, and that of the asked server who has read.
func TestAuditOfHoldsAndReads(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t, func(f serverFlags) []string {
		return []string{"--audit-file", auditFile(f), "--audit-classes", "holds,reads"}
	})
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	playSteps(t, list[1], []step{
		{as("hans", "allocate --id one --at cern:atlas/physics --amount cores=3 --ttl 1h"), 0, "granted"},
		{as("hans", "allocate --id one --at cern:atlas/physics --amount cores=3 --ttl 1h"), 0, ""},
		{as("hans", "release one"), 0, ""},
		{as("heidi", "allocate --id short --at cern:atlas/physics --amount cores=1 --ttl 1s"), 0, "granted"},
		{as("heidi", "allocation list"), 0, ""},
	})
	var all []string
	for _, f := range list {
		all = append(all, auditFile(f))
		awaitCondition(t, f.id+" has not recorded the end of the lease", func() bool {
			return strings.Contains(strings.Join(auditLines(t, auditFile(f), audit.Server), ""), `"action":"expired"`)
		})
		command := "audit list " + auditFile(f)
		playSteps(t, f, []step{
			{
				command + " --action granted --by account/hans", 0,
				"none -> cores=3; allocation account/hans one of account/hans",
			},
			{command + " --action released --by account/hans", 0, "cores=3 -> none; allocation account/hans one"},
			{command + " --action expired", 0, "system"},
			{"audit verify " + auditFile(f), 0, "missing records      0"},
		})
		if n := f.countGrants(t); n != 2 {
			t.Errorf("%s has recorded %d grants, want 2", f.id, n)
		}
		hasNoTokens(t, auditFile(f), tokens)
	}
	playSteps(t, list[1], []step{
		{
			"audit list " + strings.Join(all, " ") + " --action AllocationService/ListAllocations --by account/heidi", 0,
			"done",
		},
	})
	grants := runCommand(t, append([]string{"audit", "list", "--action", "granted"}, all...)...).stdout
	if strings.Count(grants, "\n") != 3 { // a heading and two grants
		t.Errorf("grants are shown as often as there are files:\n%s", grants)
	}
	modes := runCommand(t, append([]string{"audit", "list", "--action", "SetMode"}, all...)...).stdout
	if strings.Count(modes, "\n") != 3 { // a heading, watching and guarded
		t.Errorf("changes of the mode are shown as often as there are files:\n%s", modes)
	}
	processes[0].stopCleanly(t)
	processes[0] = startProcess(t, list[0].commandLine()...)
	awaitReady(t, processes[0], list[0])
	playSteps(t, list[0], []step{{as("hans", "allocate --id two --at cern:atlas/physics --amount cores=1"), 0, "granted"}})
	awaitCondition(t, "the restarted server has not recorded each grant once", func() bool {
		return list[0].countGrants(t) == 3
	})
}

func (f serverFlags) countGrants(t *testing.T) int {
	t.Helper()
	return strings.Count(strings.Join(auditLines(t, auditFile(f), audit.Server), ""), `"action":"granted"`)
}

func awaitAudited(t *testing.T, list []serverFlags, reason string) string {
	t.Helper()
	found := map[string]int{}
	awaitCondition(t, "not all audit files have a record of "+reason, func() bool {
		clear(found)
		for _, f := range list {
			for _, line := range auditLines(t, auditFile(f), audit.Ledger) {
				if strings.Contains(line, reason) {
					found[line]++
				}
			}
		}
		for _, n := range found {
			return n >= len(list)
		}
		return false
	})
	if len(found) != 1 {
		t.Errorf("the files have different records: %v", found)
	}
	for line := range found {
		return line
	}
	return ""
}

// hasNoTokens checks that a file has none of the tokens of a folder, nor parts of their secrets.
func hasNoTokens(t *testing.T, path, tokens string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(tokens, "*"))
	if err != nil || len(files) < 7 {
		t.Fatalf("there are the tokens %v, %v", files, err)
	}
	for _, file := range files {
		token, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(strings.TrimSpace(string(token)), "_")
		secret := slices.MaxFunc(parts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		if len(secret) < 20 || bytes.Contains(text, []byte(secret[:20])) {
			t.Errorf("%s has the token of %s, or that is none", path, filepath.Base(file))
		}
	}
}

func findsTampering(t *testing.T, f serverFlags) {
	t.Helper()
	text, err := os.ReadFile(auditFile(f))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	middle := len(lines) / 2
	for name, changed := range map[string]string{
		"changed": strings.Replace(string(text), "account/anna", "account/eve1", 1),
		"removed": strings.Join(append(append([]string{}, lines[:middle]...), lines[middle+1:]...), ""),
		"moved":   strings.Join(append(append([]string{}, lines[middle:]...), lines[:middle]...), ""),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		end := runCommand(t, "audit", "verify", path)
		if end.code != 1 || !strings.Contains(end.stderr, "line ") {
			t.Errorf("%s: exit code %d, %s%s", name, end.code, end.stdout, end.stderr)
		}
	}
	end := runCommand(t, "audit", "verify", auditFile(f), "-o", "json")
	var found struct{ Ledger struct{ First, Last uint64 } }
	if err := json.Unmarshal([]byte(end.stdout), &found); err != nil || found.Ledger.First != 1 || found.Ledger.Last < 10 {
		t.Errorf("got %s, %v", end.stdout, err)
	}
}
