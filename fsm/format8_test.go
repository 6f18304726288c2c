package fsm

import "testing"

// eighthGoldens are the entries of the eighth format.
func eighthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	return map[string][]byte{"entry-v8-raise-level.bin": joined(t, RaiseLevel(eighthFormat))}
}
