package fsm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/quorate/quorate/quota"
)

func replacementGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for name, data := range map[string][]byte{
		"begin":   step(t)(BeginReplacement("r1", 9, 1)),
		"part":    step(t)(ReplacementPart("r1", []byte("the state"))),
		"end":     step(t)(EndReplacement("r1", bytes.Repeat([]byte{7}, sha256.Size))),
		"abandon": step(t)(AbandonReplacement("r1")),
	} {
		files["replacement-"+name] = data
	}
	return files
}

func step(t testing.TB) func([]byte, error) []byte {
	t.Helper()
	return func(data []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

func steps(t testing.TB, id string, snapshot []byte) [][]byte {
	t.Helper()
	half, digest := len(snapshot)/2, sha256.Sum256(snapshot)
	return [][]byte{
		step(t)(BeginReplacement(id, uint64(len(snapshot)), quota.FirstFormat)),
		step(t)(ReplacementPart(id, snapshot[:half])),
		step(t)(ReplacementPart(id, snapshot[half:])), step(t)(EndReplacement(id, digest[:])),
	}
}

// applySteps returns the result of the last entry.
func applySteps(t testing.TB, f *FSM, entries ...[]byte) Replaced {
	t.Helper()
	var last Replaced
	for _, data := range entries {
		answer, ok := applyData(f, f.Applied()+1, data).(Replaced)
		if !ok {
			t.Fatalf("entry %d: halted: %v", f.Applied()+1, f.Halted())
		}
		last = answer
	}
	return last
}

func TestAReplacementTakesEffectWithItsLastStep(t *testing.T) {
	backup := snapshotOf(t, itemsFSM(t))
	f := sampleFSM(t)
	before, header := snapshotOf(t, f), f.ledger.Header()
	entries := steps(t, "r", backup)
	applySteps(t, f, entries[:3]...)
	if _, err := f.Snapshot(); !errors.Is(err, errReplacing) || f.Replacing() != "r" {
		t.Errorf("a snapshot in the middle of a replacement: %v", err)
	}
	if now := f.ledger.Header(); now != header {
		t.Errorf("before its last step it has changed %+v to %+v", header, now)
	}
	done := applySteps(t, f, entries[3])
	if !done.Done || f.Replacing() != "" || done.Header.Fence < max(header.Fence,
		itemsFSM(t).ledger.Header().Fence)+FenceGap {
		t.Errorf("the last step did %+v", done)
	}
	after := snapshotOf(t, f)
	if bytes.Equal(before, after) || f.Format() != quota.FirstFormat {
		t.Error("the last step changed nothing")
	}
	if _, err := f.ReadFeed(After(1), 10); !errors.Is(err, ErrForgotten) {
		t.Errorf("the feed goes on over a replacement: %v", err)
	}
	if again := restored(t, after); !bytes.Equal(snapshotOf(t, again), after) {
		t.Error("what it left behind is not restored from a snapshot")
	}
}

// TestReplicasReplaceEqually: replicas replace the state equally for any batching of the entries, and after a restart.
func TestReplicasReplaceEqually(t *testing.T) {
	entries := append([][]byte{mustEncode(t, benchTree()), mustEncode(t, benchAllocate(1))},
		steps(t, "r", snapshotOf(t, itemsFSM(t)))...)
	entries = append(entries, mustEncode(t, quota.Expire{Most: 512}), mustEncode(t, quota.Release{ID: "nobody"}))
	one, other := New(Options{}), New(Options{})
	for i, data := range entries {
		applyData(one, uint64(i+1), data)
		applyData(other, uint64(i+1), data)
		if one.Replacing() == "" {
			other = restored(t, snapshotOf(t, other))
		}
	}
	if !bytes.Equal(snapshotOf(t, one), snapshotOf(t, other)) {
		t.Error("two replicas of one log differ")
	}
}

func TestAReplacementThatIsNotWholeHasNoEffect(t *testing.T) {
	backup := snapshotOf(t, itemsFSM(t))
	good := steps(t, "r", backup)
	for name, entries := range map[string][][]byte{
		"a part is missing":   {good[0], good[1], good[3]},
		"a part comes twice":  {good[0], good[1], good[1], good[2]},
		"out of order":        {good[0], good[2], good[1], good[3]},
		"another one's parts": {good[0], steps(t, "s", backup)[1]},
		"no beginning":        good[1:],
		"given up":            append(append([][]byte{}, good[:3]...), step(t)(AbandonReplacement("r")), good[3]),
		"another one began":   append(append([][]byte{}, good[:3]...), steps(t, "s", backup)[0], good[3]),
		"too large":           {step(t)(BeginReplacement("r", MaxReplacementBytes+1, quota.FirstFormat))},
	} {
		f := sampleFSM(t)
		before := f.ledger.Header()
		if last := applySteps(t, f, entries...); last.Refused == nil || last.Done {
			t.Errorf("%s: %+v", name, last)
		}
		if f.ledger.Header() != before {
			t.Errorf("%s: it changed the state", name)
		}
	}
}

// TestUnloadableStateHalts: a state that cannot be loaded halts the node, because the leader has already loaded
// it.
func TestUnloadableStateHalts(t *testing.T) {
	f := sampleFSM(t)
	for i, data := range steps(t, "r", []byte("no snapshot at all")) {
		applyData(f, uint64(100+i), data)
	}
	if !errors.Is(f.Halted(), ErrHalted) {
		t.Error("the node goes on")
	}
}

// TestARecoveryBeginsANewHistory: a recovery advances the fences and drops a pending replacement.
func TestARecoveryBeginsANewHistory(t *testing.T) {
	f := sampleFSM(t)
	before := f.ledger.Header()
	applySteps(t, f, steps(t, "r", snapshotOf(t, itemsFSM(t)))[:2]...)
	s, err := Recovery{f}.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var out sink
	if err := s.Persist(&out); err != nil {
		t.Fatal(err)
	}
	got := restored(t, out.Bytes()).ledger.Header()
	if got.Fence != before.Fence+FenceGap || got.Revision != before.Revision {
		t.Errorf("it begins with %+v after %+v", got, before)
	}
	if info, err := ReadSnapshot(bytes.NewReader(out.Bytes()), Options{}); err != nil || info.Fence != got.Fence ||
		info.Counts.Held == 0 {
		t.Errorf("its snapshot says %+v, %v", info, err)
	}
}
