package main_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/logstoretest"
	"github.com/quorate/quorate/cluster/raftguard"
	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/internal/verify"
)

// For each released version, testdata/released has the data folder of one of its servers, as a ZIP file, and the
// answers of that server. Existing fixtures are never rewritten. `make fixture VERSION=v1.1.0` adds those of another
// version, whose commit must be in the list of releases.
var writeFixture = flag.String("write-fixture", "", "write the data folder that a released version leaves")

// fixtureLife are the commands that fill the server of a fixture with every kind of stored record. %s is the folder of
// its version.
var fixtureLife = []string{
	"apply -f %s/examples/cern.yaml --actor ann --reason first",
	"apply -f %s/examples/ci.yaml --actor eva",
	"allocate --id jobs --at cern:atlas/physics/simulation --amount cores=5 --user ann --application " +
		"higgs --label run=7",
	"allocate --id denied --at cern:atlas/operations/workflow --amount cores=100000",
	"allocate --id reserved --at cern:atlas/operations/web --amount cores=2 --reserve 1h",
	"allocate --id short --at cern:atlas/operations/web --amount cores=1",
	"release short",
	"allocate --id lease --ttl 24h --user ann --data host=x --at ci:tenants/web --item aws-account --amount cores=4",
	"allocate --id more --ttl 24h --at ci:tenants/data --item aws-account",
	"allocate --id waits --ttl 24h --wait 24h --async --priority 3 --at ci:tenants/web --item aws-account",
	"allocate --id left --wait 24h --async --at ci:tenants/web --item aws-account",
	"renew lease --data host=y",
	"release left --restore",
	"limit set cern:atlas/operations/web cores=25 --actor bob",
	"revision rollback 3 --actor eva --reason mistake",
	"allocate --id grows --at cern:atlas/operations/web --amount cores=2 --user ann",
	"allocation resize grows --amount cores=3 --generation 5",
	"allocation split grows part --at cern:atlas/operations/web --amount cores=1",
	"allocation transfer part cern:atlas/operations/web cern:atlas/operations/workflow",
	"account create robot --description runs",
	"token create robot --description one",
}

// fixtureQuestions are read-only commands, run against the server that wrote the folder and against this version.
var fixtureQuestions = []string{
	"manifest export", "usage cern", "usage ci", "allocation list", "lease list", "queue list",
	"item list ci:aws-account --show-data", "revision list", "event list",
	"principal list cern", "allocation show short", "explain waits",
	"allocation show part", "allocation show grows", "account list",
	"token list robot", "limit show cern:atlas/physics",
}

type remembered struct {
	Version string
	// Answers are the answers of that version, by question.
	Answers map[string]json.RawMessage
	// Applied is the last log index, Chain the digest of the log, and State the digest of the ledger when the fixture was
	// written.
	Applied      uint64
	Chain, State string
}

func TestFoldersOfReleasedVersions(t *testing.T) {
	t.Parallel()
	if *writeFixture != "" {
		newFixture(t, *writeFixture)
	}
	for version := range released {
		t.Run(version, func(t *testing.T) {
			if version != previous {
				verify.Only(t)
			}
			t.Parallel()
			f, stored := openFixture(t, version)
			if applied, chain, state := ledgerOf(t, f.dir); applied != stored.Applied || chain != stored.Chain ||
				state != stored.State {
				t.Errorf("at index %d the log has the digest %s and the state %s, want %d, %s, %s",
					applied, chain, state, stored.Applied, stored.Chain, stored.State)
			}
			startServer(t, f)
			for _, question := range fixtureQuestions {
				var before any
				if err := json.Unmarshal(stored.Answers[question], &before); err != nil {
					t.Fatalf("what %s answered to %s: %v", version, question, err)
				}
				if lost := missingFields("", before, answerTo(t, f, question)); len(lost) > 0 {
					t.Errorf("%s: %s", question, strings.Join(lost, "; "))
				}
			}
			runUntil(t, f, "digest list --now", 0, "agrees")
		})
	}
}

// answerTo returns an answer without its time and server.
func answerTo(t *testing.T, f serverFlags, question string) any {
	t.Helper()
	end := runCommand(t, append(strings.Fields(question), "--server", f.baseURL(), "-o", "json")...)
	var answer any
	if err := json.Unmarshal([]byte(end.stdout), &answer); err != nil {
		t.Fatalf("%s: %v\n%s%s", question, err, end.stdout, end.stderr)
	}
	if object, ok := answer.(map[string]any); ok {
		delete(object, "read")
	}
	return answer
}

// missingFields returns the fields that an earlier answer has and the current one lacks. New fields are allowed.
func missingFields(place string, before, now any) (lost []string) {
	switch before := before.(type) {
	case map[string]any:
		object, ok := now.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s was %v and is %v", place, before, now)}
		}
		for key, value := range before {
			if key == "explanation" && object[key] != nil {
				continue // it is for people, and may be worded better
			}
			lost = append(lost, missingFields(place+"."+key, value, object[key])...)
		}
		return lost
	case []any:
		list, ok := now.([]any)
		if !ok || len(list) != len(before) {
			return []string{fmt.Sprintf("%s was %v and is %v", place, before, now)}
		}
		for i := range before {
			lost = append(lost, missingFields(fmt.Sprintf("%s[%d]", place, i), before[i], list[i])...)
		}
		return lost
	}
	if before != now {
		return []string{fmt.Sprintf("%s was %v and is %v", place, before, now)}
	}
	return nil
}

// ledgerOf replays the data folder of a stopped server and returns the last index, the digest of the log and the digest
// of the state.
func ledgerOf(t *testing.T, dir string) (applied uint64, chain, state string) {
	t.Helper()
	machine := fsm.New(fsm.Options{})
	snapshots, err := raft.NewFileSnapshotStore(dir, 3, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		t.Fatalf("there is no snapshot: %v", err)
	}
	_, source, err := snapshots.Open(list[0].ID)
	if err == nil {
		err = machine.Restore(source)
	}
	if err != nil {
		t.Fatal(err)
	}
	replayLog(t, dir, machine)
	index, sum := machine.Chain()
	return index, hex.EncodeToString(sum[:]), hex.EncodeToString(digestOf(t, machine))
}

func replayLog(t *testing.T, dir string, machine *fsm.FSM) {
	t.Helper()
	stores, err := logstoretest.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stores.Close() }() // only read
	logs := raftguard.NewChecksum(stores.Logs)
	last, err := logs.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	for index := machine.Applied() + 1; index <= last; index++ {
		var entry raft.Log
		if err := logs.GetLog(index, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Type == raft.LogCommand {
			machine.Apply(&entry)
		}
	}
	if err := machine.Halted(); err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, machine *fsm.FSM) []byte {
	t.Helper()
	frozen, err := machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var sink memory
	if err := frozen.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	return sink.Bytes()[sink.Len()-32:] // it ends with it
}

// memory is a snapshot sink in memory.
type memory struct{ bytes.Buffer }

func (*memory) ID() string    { return "memory" }
func (*memory) Cancel() error { return nil }
func (*memory) Close() error  { return nil }

func fixturePath(version, kind string) string {
	return filepath.Join("testdata", "released", version+"."+kind)
}

// openFixture unpacks a folder for a server of this version.
func openFixture(t *testing.T, version string) (serverFlags, remembered) {
	t.Helper()
	f := singleServer(t)
	var stored remembered
	text, err := os.ReadFile(fixturePath(version, "json"))
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	unzipFolder(t, fixturePath(version, "zip"), f.dir)
	return f, stored
}

func unzipFolder(t *testing.T, from, to string) {
	t.Helper()
	packed, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close() //nolint:errcheck // only read
	if err := os.CopyFS(to, packed); err != nil {
		t.Fatal(err)
	}
}

// TestDataOfDevelopmentBuildsIsRefused: a build from before the first release wrote the folder and the backup. Nothing
// in them is changed, and the error says what to do.
func TestDataOfDevelopmentBuildsIsRefused(t *testing.T) {
	t.Parallel()
	const why = "a development build of Quorate from before the first release wrote it"
	f := singleServer(t)
	unzipFolder(t, filepath.Join("testdata", "development", "level-10.zip"), f.dir)
	before := filesIn(t, f.dir)
	if end := startProcess(t, f.commandLine()...).awaitEnd(t); end.code == 0 || !strings.Contains(end.stderr, why) ||
		!strings.Contains(end.stderr, "quorate export") {
		t.Errorf("the server ends with %d: %s", end.code, end.stderr)
	}
	if after := filesIn(t, f.dir); after != before {
		t.Errorf("the folder had\n%sand has\n%s", before, after)
	}
	backup := filepath.Join("testdata", "development", "backup")
	if end := runCommand(t, "snapshot", "show", backup); end.code != 2 || !strings.Contains(end.stderr, why) {
		t.Errorf("inspect ends with %d: %s", end.code, end.stderr)
	}
	fresh := singleServer(t)
	startServer(t, fresh)
	end := runCommand(t, "snapshot", "restore", backup, "--yes", "--server", fresh.baseURL())
	if end.code != 2 || !strings.Contains(end.stderr, why) {
		t.Errorf("restore ends with %d: %s", end.code, end.stderr)
	}
}

func filesIn(t *testing.T, folder string) string {
	t.Helper()
	text := ""
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		text += fmt.Sprintf("%s %x\n", path, sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newFixture runs the commands of a fixture against a released version and stores its data folder and answers.
func newFixture(t *testing.T, version string) {
	t.Helper()
	if _, err := os.Stat(fixturePath(version, "zip")); err == nil || released[version] == "" {
		t.Fatalf("the files of %s are there already, or its commit is not in the list of releases", version)
	}
	source, program := new(release).buildOnce(t, version)
	f := singleServer(t, "--snapshot-every", "6", "--snapshot-check", "50ms", "--snapshot-trail", "2")
	p := startVersion(t, program, f)
	for _, line := range fixtureLife {
		line = strings.ReplaceAll(line, "%s", source)
		end := startCommand(t, commandOf(program, append(strings.Fields(line), "--server", f.baseURL())...)).awaitEnd(t)
		if !slices.Contains([]int{0, 3, 9}, end.code) {
			t.Fatalf("%s: %d\n%s", line, end.code, end.stderr)
		}
		time.Sleep(100 * time.Millisecond) // snapshots are to come between them
	}
	recorded := remembered{Version: version, Answers: map[string]json.RawMessage{}}
	for _, question := range fixtureQuestions {
		answer, err := json.Marshal(answerTo(t, f, question)) // asked by this version, answered by that one
		if err != nil {
			t.Fatal(err)
		}
		recorded.Answers[question] = answer
	}
	p.stopCleanly(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(fixturePath(version, "zip")), 0o755),
		zipFolder(f.dir, fixturePath(version, "zip"))); err != nil {
		t.Fatal(err)
	}
	recorded.Applied, recorded.Chain, recorded.State = ledgerOf(t, f.dir)
	text, err := json.MarshalIndent(recorded, "", " ")
	if err == nil {
		err = os.WriteFile(fixturePath(version, "json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func zipFolder(folder, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	packed := zip.NewWriter(file)
	packed.RegisterCompressor(
		zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := packed.Create(filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	return errors.Join(err, packed.Close(), file.Close())
}
