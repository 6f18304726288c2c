package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// ninthSamples are the commands of the ninth format, by the name of their golden file, with every field set.
func ninthSamples() map[string]quota.Command {
	return map[string]quota.Command{}
}

// ninthFSM is a state machine with everything that commands of the ninth format leave in a snapshot.
func ninthFSM(t testing.TB) *FSM {
	t.Helper()
	f := eighthFSM(t)
	applyData(f, f.applied+1, joined(t, RaiseLevel(ninthFormat)))
	return f
}

// ninthGoldens are the entries of the ninth format, and a snapshot with what they leave.
func ninthGoldens(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{
		"entry-v9-raise-level.bin": joined(t, RaiseLevel(ninthFormat)), "snapshot-v9.bin": snapshotOf(t, ninthFSM(t)),
	}
	for name, c := range ninthSamples() {
		files["entry-v9-"+name+".bin"] = joined(t, partOf(t, evaCaller, c))
	}
	return files
}
