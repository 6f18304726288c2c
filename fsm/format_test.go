package fsm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// nextFormats are those of a made-up next version, in which allocations may have a label that no earlier version knows.
func nextFormats() *Formats {
	return NewFormats(Requirement{Format: 2, IsUsed: func(c quota.Command) bool {
		a, ok := c.(quota.Allocate)
		return ok && len(a.Labels) > 0 && a.Labels[0].Key == "next"
	}})
}

// nextAllocate is a command that needs the next format.
func nextAllocate(i int) quota.Allocate {
	a := benchAllocate(i)
	a.Labels = []quota.Label{{Key: "next", Value: "yes"}}
	return a
}

func nextPart(t testing.TB, commands ...quota.Command) Part {
	t.Helper()
	part, err := nextFormats().EncodeCommands(nil, commands)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// TestThisVersionHasOneFormat: the first feature level is that of the first release.
func TestThisVersionHasOneFormat(t *testing.T) {
	if NewestFormat() != quota.FirstFormat || (*Formats)(nil).Newest() != quota.FirstFormat {
		t.Errorf("the newest format is %d", NewestFormat())
	}
	if newest := nextFormats().Newest(); newest != 2 {
		t.Errorf("the next version has format %d", newest)
	}
}

// TestNewestPartDecides: the format of an entry is the newest that one of its parts needs.
func TestNewestPartDecides(t *testing.T) {
	first, next := benchAllocate(1), nextAllocate(2)
	for _, c := range []struct {
		parts []Part
		want  uint32
	}{
		{[]Part{nextPart(t, first), nextPart(t, first, first)}, 1},
		{[]Part{nextPart(t, first, next)}, 2},
		{[]Part{nextPart(t, first), nextPart(t, next), nextPart(t, first)}, 2},
		{[]Part{RaiseLevel(2), Checkpoint()}, 1}, // for a reader that does not know the level to say so
	} {
		entry, err := nextFormats().decodeEntry(joined(t, c.parts...))
		if err != nil || entry.format != c.want {
			t.Errorf("%v make an entry of format %d, %v; want %d", c.parts, entry.format, err, c.want)
		}
	}
}

// TestRaiseLevelChangesNothingElse: the raised level is kept by snapshots, known to the ledger, and changes no record.
func TestRaiseLevelChangesNothingElse(t *testing.T) {
	f := New(Options{Formats: nextFormats()})
	applyData(f, 1, mustEncode(t, benchTree()))
	before, now := describeImage(t, f.ledger.Snapshot()), f.Now()
	outcomes, ok := applyData(f, 2, joined(t, RaiseLevel(2))).(Outcomes)
	if !ok || len(outcomes) != 0 || f.Format() != 2 || f.ledger.Format() != 2 {
		t.Fatalf("answered %v, level %d, of the ledger %d", outcomes, f.Format(), f.ledger.Format())
	}
	if after := describeImage(t, f.ledger.Snapshot()); after != before || f.Now() < now {
		t.Errorf("the ledger was\n%s and became\n%s", before, after)
	}
	g := New(Options{Formats: nextFormats()})
	if err := g.Restore(readCloser{bytes.NewReader(snapshotOf(t, f))}); err != nil {
		t.Fatal(err)
	}
	if g.Format() != 2 || g.ledger.Format() != 2 || !bytes.Equal(snapshotOf(t, g), snapshotOf(t, f)) {
		t.Errorf("a restore knows level %d, and its ledger %d", g.Format(), g.ledger.Format())
	}
	for i, step := range steps(t, "r", snapshotOf(t, itemsFSM(t))) {
		applyData(f, uint64(3+i), step)
	}
	if f.Format() != 2 || f.ledger.Format() != 2 {
		t.Errorf("after a replacement by an older state the level is %d, and of the ledger %d", f.Format(), f.ledger.Format())
	}
}

// TestNewerEntriesHalt: a member that does not understand the format of an entry halts there, says so, and does not
// skip it. One that understands it goes on.
func TestNewerEntriesHalt(t *testing.T) {
	for why, data := range map[string][]byte{
		"it has format 2, but this version understands 1 to 1; run a newer version": joined(t, nextPart(t, nextAllocate(1))),
		"it raises the feature level of the cluster to 2, but this version understands 1 to 1; run a newer version": joined(t,
			RaiseLevel(2)),
	} {
		f, next := newTestFSM(t, Options{}), New(Options{Formats: nextFormats()})
		before := f.Applied()
		for i, entry := range [][]byte{data, mustEncode(t, benchAllocate(2))} {
			response, _ := applyData(f, before+1+uint64(i), entry).(error)
			if !errors.Is(response, ErrHalted) || !strings.Contains(response.Error(), why) {
				t.Errorf("entry %d is answered %v, want: %s", i, response, why)
			}
			if _, fails := applyData(next, 1+uint64(i), entry).(error); fails {
				t.Errorf("a member of the next version answers %v", next.Halted())
			}
		}
		if f.Applied() != before || next.Applied() != 2 {
			t.Errorf("the member that halted has applied %d, the other %d", f.Applied(), next.Applied())
		}
	}
}

// TestNewerSnapshotsAreRefused: a snapshot of a newer format says which version reads it, also as a backup through the
// log.
func TestNewerSnapshotsAreRefused(t *testing.T) {
	next := New(Options{Formats: nextFormats()})
	applyData(next, 1, mustEncode(t, benchTree()))
	applyData(next, 2, joined(t, RaiseLevel(2), nextPart(t, nextAllocate(1))))
	data, why := snapshotOf(t, next), "it has format 2, but this version understands 1 to 1; run a newer version"
	f := newTestFSM(t, Options{})
	if err := f.Restore(readCloser{bytes.NewReader(data)}); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("a restore is answered %v", err)
	}
	if f.Halted() != nil || f.Format() != quota.FirstFormat {
		t.Errorf("after a refused restore the level is %d, %v", f.Format(), f.Halted())
	}
}

// TestDevelopmentBuildsAreRefused: entries and snapshots that a build from before the first release wrote are not taken
// for those of format 1, whatever format they claim.
func TestDevelopmentBuildsAreRefused(t *testing.T) {
	names, err := filepath.Glob("testdata/development/entry-*.bin")
	if err != nil || len(names) == 0 {
		t.Fatalf("no entries: %v", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := New(Options{})
		f.Apply(&raft.Log{Index: 7, Type: raft.LogCommand, Data: data})
		if err := f.Halted(); !errors.Is(err, ErrDevelopmentBuild) || !strings.Contains(err.Error(), "log entry 7") ||
			!strings.Contains(err.Error(), "quorate export") {
			t.Errorf("%s: halted with %v", name, err)
		}
	}
	data, err := os.ReadFile("testdata/development/snapshot.bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckSnapshot(bytes.NewReader(data)); !errors.Is(err, ErrDevelopmentBuild) {
		t.Errorf("a snapshot is answered %v", err)
	}
	former := mustMarshal(t, &logv1.Entry{Format: 1, Commands: sampleEntry().GetCommands()})[1:]
	if _, err := ownFormats.decodeEntry(former); !errors.Is(err, ErrDevelopmentBuild) {
		t.Errorf("an entry without its first byte is answered %v", err)
	}
}
