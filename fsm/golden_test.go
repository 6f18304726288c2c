package fsm

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// The files in testdata are in released formats: every later version must decode them, and they are never rewritten. A
// new format gets new files. Until the first release, format 1 itself may change: remove the files and write them anew.
var missing = flag.Bool("write-missing", false, "write golden files that do not exist yet")

// goldenSamples are the entries and snapshots of format 1, by name: one for every command, field and record.
func goldenSamples(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{
		"snapshot-v1.bin":      snapshotOf(t, fullFSM(t)),
		"snapshot-v1-open.bin": snapshotOf(t, policiesFSM(t)), // access was never changed
	}
	add := func(name string, data []byte) {
		name = "entry-v1-" + name + ".bin"
		if files[name] != nil {
			t.Fatalf("there are two samples for %s", name)
		}
		files[name] = data
	}
	sample := sampleEntry()
	for i, name := range []string{"basic-allocate", "basic-release", "basic-apply-trees", "set-limits", "delete-tree"} {
		add(name, mustMarshal(t, &logv1.Entry{
			Format: 1, TimeMs: 5, WallMs: 1_800_000_000_000, Commands: sample.GetCommands()[i : i+1],
		}))
	}
	for kind, samples := range map[string]map[string]quota.Command{
		"reserve-": reservationSamples(), "items-": itemSamples(),
	} {
		for name, c := range samples {
			add(kind+name, joined(t, partOf(t, nil, c)))
		}
	}
	for _, samples := range []map[string]quota.Command{
		requestSamples(), holdingChanges(), timedSamples(), {
			"bindings": boundTree, "subtree": subtreeChange, "define-policies": definePolicies,
			"remove-policies": removedPolicy, "retired-items": retiringTree, "require-principal": requiringTree,
		},
	} {
		for name, c := range samples {
			add(name, joined(t, partOf(t, evaCaller, c)))
		}
	}
	for name, change := range accessSamples() {
		add(name, joined(t, partOf(t, evaCaller, quota.ChangeAccess{Reason: "test", Change: change})))
	}
	for name, parts := range controlParts(t) {
		add(name, joined(t, parts...))
	}
	for name, data := range replacementGoldens(t) {
		add(name, data)
	}
	add("callers", callersEntry(t))
	return files
}

func readGolden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func goldenEntries(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/entry-v*.bin")
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden entries: %v", err)
	}
	entries := map[string][]byte{}
	for _, name := range names {
		entries[filepath.Base(name)] = readGolden(t, filepath.Base(name))
	}
	return entries
}

// TestGoldenFiles decodes the files of every released format and compares them with their description in JSON.
func TestGoldenFiles(t *testing.T) {
	if *missing {
		writeMissing(t)
	}
	for name, data := range goldenEntries(t) {
		entry, err := ownFormats.decodeEntry(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compareTwin(t, name, describeEntry(t, entry))
	}
	snapshots, err := filepath.Glob("testdata/snapshot-v*.bin")
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no golden snapshots: %v", err)
	}
	for _, path := range snapshots {
		name := filepath.Base(path)
		compareTwin(t, name, describeState(t, restored(t, readGolden(t, name))))
	}
}

// TestFormat1IsStillWritten: this version still writes format 1 byte for byte, so that replicas of adjacent versions
// have equal chains and, until the ledger has a record of a newer format, equal snapshots.
func TestFormat1IsStillWritten(t *testing.T) {
	samples := goldenSamples(t)
	for name, data := range samples {
		golden := readGolden(t, name)
		if strings.HasPrefix(name, "snapshot") {
			data = snapshotOf(t, restored(t, golden))
		}
		if !bytes.Equal(data, golden) {
			t.Errorf("%s would be written otherwise", name)
		}
	}
	for name := range goldenEntries(t) {
		if samples[name] == nil {
			t.Errorf("no sample makes %s", name)
		}
	}
}

func compareTwin(t *testing.T, name, got string) {
	t.Helper()
	want := string(readGolden(t, strings.TrimSuffix(name, ".bin")+".txt"))
	if diff := cmp.Diff(spoken(t, want), spoken(t, got)); diff != "" {
		t.Errorf("%s (-file +decoded):\n%s", name, diff)
	}
}

// spoken removes empty members from a description, because fields that were added later are empty in older files. A
// description is a list of JSON values, each with an optional word in front.
func spoken(t *testing.T, text string) []any {
	t.Helper()
	var list []any
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		at := max(0, strings.IndexAny(text, "{["))
		list = append(list, strings.TrimSpace(text[:at]))
		decoder := json.NewDecoder(strings.NewReader(text[at:]))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		list = append(list, withoutEmpty(value))
		text = text[at:][decoder.InputOffset():]
	}
	return list
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			value[i] = withoutEmpty(item)
		}
	case map[string]any:
		for key, member := range value {
			value[key] = withoutEmpty(member)
			if says := fmt.Sprint(value[key]); slices.Contains(
				[]string{"<nil>", "0", "", "false", "[]", "map[]"}, says) {
				delete(value, key)
			}
		}
	}
	return value
}

func describeEntry(t testing.TB, e decoded) string {
	t.Helper()
	text := indent(t, e.stamp)
	if e.replacement != nil {
		return text + "Replacement " + indent(t, e.replacement)
	}
	for _, c := range e.commands {
		text += strings.TrimPrefix(fmt.Sprintf("%T ", c), "quota.") + indent(t, c)
		if change, ok := c.(quota.ChangeAccess); ok {
			text += strings.TrimPrefix(fmt.Sprintf("by %T", change.Change), "access.") + " {}\n"
		}
	}
	for _, run := range e.callers {
		text += "callers " + indent(t, map[string]any{"Commands": run.commands, "Caller": run.caller})
	}
	if e.level > 0 || e.checkpoint {
		text += "behind them " + indent(t, map[string]any{"RaiseLevel": e.level, "Checkpoint": e.checkpoint})
	}
	return text
}

func describeImage(t testing.TB, image *ledger.Snapshot) string {
	t.Helper()
	text := indent(t, image.Header)
	if book := image.Book(); book.Revision() > 0 {
		text += "access " + indent(t, book.State())
	}
	if len(image.Policies()) > 0 {
		text += indent(t, image.Policies())
	}
	text += indent(t, image.Trees()) + indent(t, image.Revisions()) +
		indent(t, slices.Collect(image.Held())) + indent(t, slices.Collect(image.Ended()))
	if len(image.Events()) > 0 {
		text += indent(t, image.Events())
	}
	if items := slices.Collect(image.Items()); len(items) > 0 {
		text += indent(t, items)
	}
	if waiting := slices.Collect(image.Waiting()); len(waiting) > 0 {
		text += indent(t, waiting)
	}
	return text
}

func describeState(t testing.TB, f *FSM) string {
	t.Helper()
	return describeImage(t, f.ledger.Snapshot()) + describeRecords(f.records.Entries())
}

func describeRecords(list []audit.Entry) string {
	text := ""
	for _, e := range list {
		text += string(e.Line) + "\n"
	}
	return text
}

func indent(t testing.TB, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func writeMissing(t *testing.T) {
	t.Helper()
	for name, data := range goldenSamples(t) {
		path := filepath.Join("testdata", name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		var text string
		if entry, err := ownFormats.decodeEntry(data); err == nil {
			text = describeEntry(t, entry)
		} else {
			text = describeState(t, restored(t, data))
		}
		for file, content := range map[string]string{
			path: string(data),
			strings.TrimSuffix(path, ".bin") + ".txt": text,
		} {
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
