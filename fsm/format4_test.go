package fsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

// fourthParts are entries with the fields of the fourth format, alone and beside commands.
func fourthParts(t testing.TB) map[string][]Part {
	t.Helper()
	commands, err := EncodeCommands(nil, []quota.Command{quota.Release{ID: "i"}, quota.Confirm{ID: "i"}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]Part{
		"raise-level": {RaiseLevel(fourthFormat)}, "checkpoint": {Checkpoint()},
		"all": {Checkpoint(), commands, RaiseLevel(fourthFormat), Checkpoint()},
	}
}

func joined(t testing.TB, parts ...Part) []byte {
	t.Helper()
	data, err := JoinEntry(quota.Stamp{At: 5, Wall: 1_800_000_000_000}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fourthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	machine := thirdFSM(t)
	applyData(machine, machine.applied+1, joined(t, RaiseLevel(fourthFormat)))
	files := map[string][]byte{"snapshot-v4.bin": snapshotOf(t, machine)}
	for name, parts := range fourthParts(t) {
		files["entry-v4-"+name+".bin"] = joined(t, parts...)
	}
	return files
}

// TestRaiseLevelChangesNothingElse: raising the level is kept by snapshots and does not change the ledger.
func TestRaiseLevelChangesNothingElse(t *testing.T) {
	f := New(Options{})
	applyData(f, 1, mustEncode(t, quota.Release{ID: "nobody"}))
	before, now := describeImage(t, f.ledger.Snapshot()), f.Now()
	outcomes, ok := applyData(f, 2, joined(t, RaiseLevel(fourthFormat))).(Outcomes)
	if !ok || len(outcomes) != 0 || f.Format() != fourthFormat {
		t.Fatalf("answered %v, level %d", outcomes, f.Format())
	}
	if after := describeImage(t, f.ledger.Snapshot()); after != before || f.Now() != now {
		t.Errorf("the ledger was\n%s and became\n%s", before, after)
	}
	g := restored(t, snapshotOf(t, f))
	if g.Format() != fourthFormat || !bytes.Equal(snapshotOf(t, g), snapshotOf(t, f)) {
		t.Errorf("a restore knows level %d", g.Format())
	}
}

// TestUnknownLevelsHalt: an unknown level, or a field that the entry's format does not have, halts the state
// machine.
func TestUnknownLevelsHalt(t *testing.T) {
	for why, entry := range map[string]*logv1.Entry{
		fmt.Sprintf("raises the feature level of the cluster to %d", EntryFormat+1): {
			Format:     4,
			RaiseLevel: EntryFormat + 1,
		},
		"fields that came with format 4": {Format: 3, RaiseLevel: 3},
		"it has format 3, and fields that came with format 4": {
			Format: 3, Checkpoint: true,
			Commands: sampleEntry().GetCommands(),
		},
		"carries no command": {Format: 4},
	} {
		f := New(Options{})
		applyData(f, 1, mustMarshal(t, entry))
		if err := f.Halted(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("it halted with %v, want: %s", err, why)
		}
	}
}

// TestCheckpointsOfEqualReplicasAreEqual: equal replicas have equal digests, also if one was restored from a snapshot,
// and while both continue. Replicas that differ in one allocation, or only in their log, have different digests.
func TestCheckpointsOfEqualReplicasAreEqual(t *testing.T) {
	var noted []*Checkpointed
	options := Options{OnCheckpoint: func(c *Checkpointed) { noted = append(noted, c) }}
	digest := func(f *FSM, at uint64) (d [32]byte) {
		t.Helper()
		f.options = options
		applyData(f, at, joined(t, Checkpoint()))
		last := noted[len(noted)-1]
		applyData(f, at+1, mustEncode(t, quota.Release{ID: "cores"}))
		d, err := last.Digest(t.Context())
		if err != nil || last.Index() != at {
			t.Fatalf("%v at index %d, want %d", err, last.Index(), at)
		}
		return d
	}
	f := thirdFSM(t)
	at := f.applied + 2
	applyData(f, at-1, mustEncode(t, askCores("more", 1)))
	snapshot := snapshotOf(t, f)
	want := digest(f, at)
	if got := digest(restored(t, snapshot), at); got != want {
		t.Errorf("a replica that comes from a snapshot has digest %x, want %x", got, want)
	}
	other := thirdFSM(t)
	applyData(other, at-1, mustEncode(t, askCores("less", 1)))
	if digest(other, at) == want {
		t.Error("a replica with another allocation has the same digest")
	}
	detour := restored(t, snapshot)
	detour.chain[0]++
	if digest(detour, at) == want {
		t.Error("a replica with another past has the same digest")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := noted[0].Digest(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("without time it answered %v", err)
	}
}
