package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func changedAfter(t *testing.T, f *FSM, index uint64) (changes quota.Changes) {
	t.Helper()
	if _, err := f.View(func(v ledger.Reader) {
		reader, refused := v.ReaderOf(nil)
		if refused != nil {
			t.Fatal(refused)
		}
		changes = reader.Changes(quota.ChangesQuery{After: index})
	}); err != nil {
		t.Fatal(err)
	}
	return changes
}

// TestChangesSinceASnapshot: a state machine knows what its own entries have changed, and nothing before a snapshot
// that it has read or that log entries have put in place of its state.
func TestChangesSinceASnapshot(t *testing.T) {
	f := newTestFSM(t, Options{})
	applyData(f, 10, holdAndEnd(t, 0, 1))
	if c := changedAfter(t, f, 9); c.Everything || len(c.Trees) != 1 {
		t.Errorf("the entry has changed %+v", c)
	}
	if c := changedAfter(t, f, 10); !c.IsEmpty() {
		t.Errorf("after it there is %+v", c)
	}
	again := restored(t, snapshotOf(t, f))
	if c := changedAfter(t, again, 9); !c.Everything {
		t.Errorf("before its snapshot another one knows %+v", c)
	}
	if c := changedAfter(t, again, 10); !c.IsEmpty() {
		t.Errorf("after its snapshot there is %+v", c)
	}
	applyData(again, 11, holdAndEnd(t, 1, 2))
	if c := changedAfter(t, again, 10); c.Everything || len(c.Trees) != 1 {
		t.Errorf("after its snapshot an entry has changed %+v", c)
	}
	applySteps(t, f, steps(t, "r", snapshotOf(t, sampleFSM(t)))...)
	if c := changedAfter(t, f, f.Applied()-1); !c.Everything {
		t.Errorf("before the replacement of its state it knows %+v", c)
	}
	if c := changedAfter(t, f, f.Applied()); !c.IsEmpty() {
		t.Errorf("after the replacement there is %+v", c)
	}
}
