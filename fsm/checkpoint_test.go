package fsm

import (
	"context"
	"errors"
	"testing"

	"github.com/quorate/quorate/quota"
)

// controlParts are entries that raise the level or compare the members, alone and beside commands.
func controlParts(t testing.TB) map[string][]Part {
	t.Helper()
	commands, err := EncodeCommands(nil, []quota.Command{quota.Release{ID: "i"}, quota.Confirm{ID: "i"}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]Part{
		"raise-level": {RaiseLevel(quota.FirstFormat)}, "checkpoint": {Checkpoint()},
		"all": {Checkpoint(), commands, RaiseLevel(quota.FirstFormat), Checkpoint()},
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
	f := itemsFSM(t)
	at := f.applied + 2
	applyData(f, at-1, mustEncode(t, askCores("more", 1)))
	snapshot := snapshotOf(t, f)
	want := digest(f, at)
	if got := digest(restored(t, snapshot), at); got != want {
		t.Errorf("a replica that comes from a snapshot has digest %x, want %x", got, want)
	}
	other := itemsFSM(t)
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
