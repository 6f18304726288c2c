package fsm_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

type memorySink struct{ bytes.Buffer }

func (*memorySink) ID() string    { return "memory" }
func (*memorySink) Cancel() error { return nil }
func (*memorySink) Close() error  { return nil }

// TestSnapshotIsOfTheMomentItWasTaken: raft writes a snapshot while it continues to apply entries. If the digest
// changed with the ledger, every node that restores the snapshot would appear to diverge.
func TestSnapshotIsOfTheMomentItWasTaken(t *testing.T) {
	f := fsm.New(fsm.Options{})
	apply(t, f, 1, quota.Release{ID: "a"})
	frozen, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	index, digest := f.Chain()
	apply(t, f, 2, quota.Release{ID: "b"})
	var sink memorySink
	if err := frozen.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	restored := fsm.New(fsm.Options{})
	if err := restored.Restore(io.NopCloser(&sink)); err != nil {
		t.Fatal(err)
	}
	if gotIndex, got := restored.Chain(); gotIndex != index || got != digest {
		t.Errorf("restored index %d and digest %x, taken at %d with %x", gotIndex, got, index, digest)
	}
}

func apply(t *testing.T, f *fsm.FSM, index uint64, commands ...quota.Command) {
	t.Helper()
	entry, err := fsm.EncodeEntry(quota.Stamp{At: quota.Instant(index)}, commands)
	if err != nil {
		t.Fatal(err)
	}
	if failed, ok := f.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: entry}).(error); ok {
		t.Fatal(failed)
	}
}
