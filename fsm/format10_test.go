package fsm

import "testing"

// tenthGoldens are an entry that raises the level to 10, and a snapshot behind it. The tenth format changes no entry.
func tenthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	raise := joined(t, RaiseLevel(tenthFormat))
	f := ninthFSM(t)
	applyData(f, f.applied+1, raise)
	return map[string][]byte{"entry-v10-raise-level.bin": raise, "snapshot-v10.bin": snapshotOf(t, f)}
}
