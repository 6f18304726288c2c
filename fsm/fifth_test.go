package fsm

import "testing"

// fifthGoldens are an entry that raises the level to 5, and a snapshot behind it. Of the fifth format are what the end of a reservation needs.
func fifthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	machine := thirdFSM(t)
	applyData(machine, machine.applied+1, joined(t, RaiseLevel(fifthFormat)))
	return map[string][]byte{
		"entry-v5-raise-level.bin": joined(t, RaiseLevel(fifthFormat)),
		"snapshot-v5.bin":          snapshotOf(t, machine),
	}
}

// TestTheLedgerFollowsTheLevel: the ledger has the level of the log, behind the entry that raises it, after a restore, and after a
// replacement of the state.
func TestTheLedgerFollowsTheLevel(t *testing.T) {
	f := New(Options{})
	applyData(f, 1, mustEncode(t, benchTree()))
	if f.ledger.Level() != firstFormat {
		t.Fatalf("a new log begins with a ledger at level %d", f.ledger.Level())
	}
	applyData(f, 2, joined(t, RaiseLevel(fifthFormat)))
	if f.ledger.Level() != fifthFormat {
		t.Errorf("after the level was raised to %d the ledger is at %d", fifthFormat, f.ledger.Level())
	}
	if g := restored(t, snapshotOf(t, f)); g.ledger.Level() != fifthFormat {
		t.Errorf("after a restore the ledger is at level %d", g.ledger.Level())
	}
	if g := restored(t, snapshotOf(t, thirdFSM(t))); g.ledger.Level() != thirdFormat {
		t.Errorf("a snapshot of format 3 restores a ledger at level %d", g.ledger.Level())
	}
	for i, step := range steps(t, "r", snapshotOf(t, thirdFSM(t))) {
		applyData(f, uint64(3+i), step)
	}
	if f.ledger.Level() != fifthFormat {
		t.Errorf("after a replacement by an older state the ledger is at level %d", f.ledger.Level())
	}
}
