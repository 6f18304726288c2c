package fsm

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// The files of testdata are of released formats: they must decode for ever and are never written again. A new format
// gets new files.
var missing = flag.Bool("write-missing", false, "write golden files that do not exist yet")

// goldens are the files of format 1, by name.
func goldens(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"snapshot-v1.bin": snapshotOf(t, sampleFSM(t))}
	sample := sampleEntry()
	for i, name := range []string{"allocate", "release", "apply-trees", "set-limits", "delete-tree"} {
		entry := &logv1.Entry{Format: 1, TimeMs: 5, WallMs: 1_800_000_000_000, Commands: sample.GetCommands()[i : i+1]}
		files["entry-v1-"+name+".bin"] = mustMarshal(t, entry)
	}
	sample.Commands = append(sample.Commands, sample.GetCommands()[0])
	files["entry-v1-all.bin"] = mustMarshal(t, sample)
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

// TestGoldenFiles: files of every released format mean what their text twins say.
func TestGoldenFiles(t *testing.T) {
	if *missing {
		writeMissing(t)
	}
	for name, data := range goldenEntries(t) {
		stamp, commands, err := decodeEntry(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compareTwin(t, name, describeEntry(t, stamp, commands))
	}
	snapshots, err := filepath.Glob("testdata/snapshot-v*.bin")
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no golden snapshots: %v", err)
	}
	for _, path := range snapshots {
		name := filepath.Base(path)
		compareTwin(t, name, describeImage(t, restored(t, readGolden(t, name)).ledger.Freeze()))
	}
}

// TestFormatOneIsWrittenSo: this version still writes format 1 byte for byte, so that replicas of neighbouring versions
// have equal chains and snapshots.
func TestFormatOneIsWrittenSo(t *testing.T) {
	for name, data := range goldens(t) {
		if !bytes.Equal(data, readGolden(t, name)) {
			t.Errorf("%s would be written otherwise", name)
		}
	}
}

func compareTwin(t *testing.T, name, got string) {
	t.Helper()
	want := string(readGolden(t, strings.TrimSuffix(name, ".bin")+".txt"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-file +decoded):\n%s", name, diff)
	}
}

func describeEntry(t testing.TB, stamp quota.Stamp, commands []quota.Command) string {
	t.Helper()
	text := indent(t, stamp)
	for _, c := range commands {
		text += typeName(c) + " " + indent(t, c)
	}
	return text
}

func typeName(c quota.Command) string {
	switch c.(type) {
	case quota.Allocate:
		return "Allocate"
	case quota.Release:
		return "Release"
	case quota.ApplyTrees:
		return "ApplyTrees"
	case quota.SetLimits:
		return "SetLimits"
	case quota.DeleteTree:
		return "DeleteTree"
	}
	return "?"
}

func describeImage(t testing.TB, image *quota.Image) string {
	t.Helper()
	return indent(t, image.Header) + indent(t, image.Trees()) + indent(t, image.Revisions()) +
		indent(t, slices.Collect(image.Held())) + indent(t, slices.Collect(image.Ended()))
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
	for name, data := range goldens(t) {
		path := filepath.Join("testdata", name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		var text string
		if stamp, commands, err := decodeEntry(data); err == nil {
			text = describeEntry(t, stamp, commands)
		} else {
			text = describeImage(t, restored(t, data).ledger.Freeze())
		}
		for file, content := range map[string]string{path: string(data), strings.TrimSuffix(path, ".bin") + ".txt": text} {
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
